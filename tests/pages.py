"""A report as those who read it have it: its text, its tables, its elements."""

import re
from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "input", "link"}
# What may be closed by itself, in pictures.
DRAWN = {"line", "circle", "g", "path", "rect", "polyline", "polygon", "text", "use"}


class Page(HTMLParser):
    """What a browser would find in a page; elements that are not closed in turn are errors.

    Attributes
    ----------
    elements : list of (str, dict)
    rows : list of list of str
        The cells of all rows of tables.
    text : str
    """

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.elements, self.rows, self.words, self.open = [], [], [], []
        self.feed(html)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.words))

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs), f"an attribute of {tag} is there twice"
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"} and self.rows:
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag in VOID | DRAWN, f"{tag} closes itself"
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, f"{tag} is closed, but not open"
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in {"style", "script"}:
            return
        self.words.append(data)
        if self.rows and {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data.strip()

    def all(self, tag):
        """The attributes of all elements with a tag."""
        return [attributes for name, attributes in self.elements if name == tag]

    def value_of(self, name):
        """What stands beside a name in a table."""
        (found,) = {row[1] for row in self.rows if row and row[0] == name}
        return found

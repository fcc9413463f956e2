"""Which texts are URLs, and what of them may be shown."""

import re
from itertools import pairwise

# One protocol, or several in a chain as fsspec takes them: simplecache::s3://bucket/a.h5.
_URL = re.compile(r"([A-Za-z][\w.+-]*::)*[A-Za-z][\w.+-]*://")
# The protocols of a text that is read backwards; forwards, long words would take long.
_BACKWARDS = re.compile(r"/:[\w.+:-]*")
# Their containers stand where others have user and password.
_CONTAINERS = {"abfs", "abfss"}


def is_url(text: str) -> bool:
    return _URL.match(text) is not None


def shown(text: str) -> str:
    """Return a URL without what may be secret in it, and any other text as it is.

    That is user and password, and all after a question mark, where signed URLs are signed.
    """
    if not is_url(text):
        return text
    return "::".join(map(_shown, text.split("::")))


def without_secrets(text: str) -> str:
    """Return a text with every URL in it as `shown`, also one that went through a `Path`."""
    return re.sub(r"\S+", lambda word: _told(word[0]), text) if ":/" in text else text


def _told(word: str) -> str:
    begun = [len(word) - found.end() for found in _BACKWARDS.finditer(word[::-1])][::-1]
    # What follows a slash or an @ is of the URL before, such as a password.
    cuts = [0, *(at for i, at in enumerate(begun) if not i or word[at - 1] not in "/@"), len(word)]
    return "".join(_told_url(word[cut:end]) for cut, end in pairwise(cuts))


def _told_url(text: str) -> str:
    url = text.rstrip("\"'`,;.:)]}")  # of the sentence
    whole = re.sub(r"(?<=\w\w:)/(?!/)", "//", url)  # `Path` makes one slash of two
    return text if shown(whole) == whole else shown(whole) + text[len(url) :]


def _shown(part: str) -> str:
    protocol, mark, rest = part.partition("://")
    if not mark:
        return part
    authority = rest.partition("/")[0]
    user, at, _ = authority.rpartition("@")
    if not at and re.search(r":\d*[^\d]", authority):
        # A password with a slash in it, which should have been written %2F.
        user, at, _ = rest.rpartition("@")
    if at and (protocol not in _CONTAINERS or ":" in user):
        rest = f"...{rest[len(user) :]}"
    # Elsewhere a question mark may be part of a pattern.
    secret = r"[?#]." if protocol in ("http", "https") else r"\?[\w.%-]+="
    found = re.search(secret, rest, re.DOTALL)
    return f"{protocol}://{rest[: found.start() + 1]}..." if found else f"{protocol}://{rest}"

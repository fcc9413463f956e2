"""How the pages are built: `make docs`."""

import os
import sys
from pathlib import Path

from streamkern import __version__

DOCS = Path(__file__).parent
EXTENSIONS = str(DOCS / "_extensions")
sys.path.insert(0, EXTENSIONS)
# Tutorials import what makes their files, and run on real data sets.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (EXTENSIONS, os.environ.get("PYTHONPATH"))))
DATA = Path(os.environ.setdefault("STREAMKERN_DATA", str(DOCS.parents[1] / "shared" / "data")))
# Cells run the program of this environment.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
os.environ["COLUMNS"] = "84"

project = "streamkern"
author = "The streamkern developers"
copyright = f"2026, {author}"  # noqa: A001  the name that Sphinx reads
version = release = __version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "public_names",
]
exclude_patterns = ["_build", "**/.ipynb_checkpoints"]
templates_path = ["_templates"]
default_role = "code"
smartquotes = False  # else the two dashes of an option become one

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "amsmath", "substitution"]
myst_heading_anchors = 3

nb_execution_mode = "force"  # processes that read pages would make the store of a cache at once
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True
if not DATA.is_dir():
    nb_execution_excludepatterns = ["tutorials/*"]

autosummary_generate = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = "streamkern"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
}
html_sidebars = {"index": [], "start": [], "changelog": []}

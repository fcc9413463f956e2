"""What a fit did and how well, as one HTML file that needs nothing else."""

from streamkern.report.html_page import write_report

__all__ = ["write_report"]

"""The paper's table and figures from finished runs, and one page with both."""

from recbole_hns.report.make import make_report

__all__ = ["make_report"]

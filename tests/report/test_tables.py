"""Tables that a study makes: in the page, in its contents, and escaped."""

from sojourn.report.page import DataTable, Page, render


def test_a_table_stands_in_the_page() -> None:
    """Title, columns, rows and note are there, as text and not as markup; the contents lead to it."""
    table = DataTable("which", "Which when", ("a < b", "c"), [["1", "<b>"]], "A note.")
    page = render(Page("T", "S.", [], [], [], tables=[table]))
    assert '<h2 id="which">Which when</h2>' in page
    assert '<a href="#which">Which when</a>' in page
    assert "<th>a &lt; b</th>" in page
    assert '<td data-name="a &lt; b">1</td>' in page, "a cell knows its column, for narrow windows"
    assert "&lt;b&gt;</td>" in page
    assert "A note." in page


def test_a_page_without_tables_is_as_before() -> None:
    """Tables are nobody's duty."""
    assert "numbers found" not in render(Page("T", "S.", [], [], []))

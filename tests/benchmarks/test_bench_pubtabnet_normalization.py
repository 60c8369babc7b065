"""The normalisation that the headline of table images rests on, rule by rule."""

from __future__ import annotations

import pytest

from loupe.metrics.table_normalization import normalize_to_plain_cells


@pytest.mark.parametrize(
    ("source", "inside"),
    [
        ("<table><tr><td>a</td></tr></table>", "<tr><td>a</td></tr>"),
        (" <HTML><body>x<table border=1><tr></tr></table>y</body></HTML>", "<tr></tr>"),
        ("<table><thead><tr><th colspan='2'>a</th></tr></thead></table>", '<tr><td colspan="2">a</td></tr>'),
        ("<table><tbody><tr><td>a\nb</td></tr></tbody></table>", "<tr><td>ab</td></tr>"),
        ("<table><tr><td><p><span>a</span><sup>2</sup></p></td></tr></table>", "<tr><td>a2</td></tr>"),
        ("<table><tr><td><b>a</b><br></td></tr></table>", "<tr><td><b>a</b><br/></td></tr>"),
        ("<table><colgroup><col/>x</colgroup><tr></tr></table>", "<tr></tr>"),
        ('<table><td><math alttext="x^2"><mi>x</mi></math><math>y</math></td></table>', "<td>$x^2$y</td>"),
        ("<table><td>&lt;5 &amp; ½</td></table>", "<td><5 & 1⁄2</td>"),
        ('<table><td style="a" width="1" class="b c" id="d">x  y</td></table>', '<td id="d">x y</td>'),
        ("<table>a</table> and <table>b</table>", "a</table> and <table>b"),
        ("```html\n<table>a</table>\n```", "a"),
        ("no table", "<html><body>no table</body></html>"),
        ("<table>unclosed", "unclosed"),
        ("", "<html><body></body></html>"),
    ],
)
def test_tables_are_normalised(source: str, inside: str) -> None:
    assert normalize_to_plain_cells(source) == f'<html><body><table border="1" >{inside}</table></body></html>'

"""Amounts are compared by value: what is written differently is equal, what is worth something else is not."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.metrics.field_values import amounts_match, read_amount

cents = st.integers(min_value=-(10**11), max_value=10**11)


def grouped(digits: str, mark: str) -> str:
    parts = []
    while len(digits) > 3:
        digits, part = digits[:-3], digits[-3:]
        parts.insert(0, part)
    return mark.join([digits, *parts])


@given(
    cents,
    st.sampled_from([(".", ","), (",", "."), ("\u202f", ","), ("'", "."), ("’", "."), ("", ","), ("", ".")]),
    st.sampled_from(["{s}{n}", "{s}{n} €", "{s}€{n}", "€{s}{n}", "EUR {s}{n}", "{s}{n} EUR", "{n}{s}", "{n}{s} euro"]),
    st.sampled_from(["-", "−", "–"]),
)
def test_every_spelling_of_an_amount_has_its_value(count: int, marks: tuple[str, str], form: str, minus: str) -> None:
    number = f"{grouped(str(abs(count) // 100), marks[0])}{marks[1]}{abs(count) % 100:02d}"
    text = form.format(s=minus if count < 0 else "", n=number)
    found = read_amount(text)
    assert found is not None and found.value == Decimal(count) / 100
    assert amounts_match(text, str(Decimal(count) / 100)) and amounts_match(str(Decimal(count) / 100), text)
    assert not amounts_match(text, str(Decimal(count + 1) / 100))


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_two_texts_are_compared_symmetrically(a: str, b: str) -> None:
    assert amounts_match(a, b) == amounts_match(b, a)


@given(st.text(alphabet="0123456789., '-+$€EUR()", max_size=40))
def test_an_amount_equals_itself_and_its_plain_number(text: str) -> None:
    found = read_amount(text)
    if found is not None:
        assert amounts_match(text, text) and amounts_match(text, str(found.value))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.234", "1234"), ("1,5", "1.5"), ("0.123", "0.123"), ("1234,567", "1234.567"), ("1.234.567", "1234567"),
        ("12,34,567.00", "1234567"), ("12,- €", "12"), ("CHF 12.--", "12"), ("(12.00)", "-12"), ("¥1,200", "1200"),
        ("１２３円", "123"), ("$-5.00", "-5"), ("Fr. 12.50", "12.5"),
        (".50", "0.5"), ("$.99", "0.99"), ("-,5 €", "-0.5"), ("Rs.99", "99"), ("$(12.00)", "-12"), ("(12.00) €", "-12"),
        ("Rp 10.000", "10000"), ("RM 12.50", "12.5"), ("R 120.00", "120"), ("12 lei", "12"), ("NT$1,000", "1000"),
        ("S/. 5", "5"), ("١٬٢٣٤٫٥٠", "1234.5"), ("١٢٣٫٤٥٦", "123.456"), ("۱۲٫۵ ریال", "12.5"),
        ("ر.س.\u200f ١٢", "12"), ("₹१२,३४,५६७", "1234567"), ("\u200e\u2212\u200e12٫5", "-12.5"),
        ("1٬234 د.إ.", "1234"), ("1 234,50 грн", "1234.5"),
        ("Rs. 1,23,456/-", "123456"), ("Rs 500 /- only", "500"), ("1,234.50/-", "1234.5"), ("KSh 500/=", "500"),
        ("-Rs. 500/-", "-500"), ("1,200 元整", "1200"), ("人民币1,200.50元整", "1200.5"), ("NT$1,200 整", "1200"),
        ("１，２００円也", "1200"), ("1,200원정", "1200"), ("1,234.50 (USD)", "1234.5"), ("（€） 12,50", "12.5"),
        ("1.234,50[EUR]", "1234.5"), ("(12.00) (USD)", "-12"), ("-(Rs.) 12", "-12"),
    ],
)  # fmt: skip
def test_what_marks_mean_is_told_by_their_places(text: str, value: str) -> None:
    found = read_amount(text)
    assert found is not None and found.value == Decimal(value)


@pytest.mark.parametrize(
    "text",
    [
        "", "-", "n/a", "12 kg", "1.2.3", "1 2 3", "12 50", "(12", "1e5", "9" * 70, "..5", "$(5", "$.",
        "5/2", "/-", "5/- kg", "元整", "5 (kg)", "5 (USD", "5 (USD) 6", "(USD)", "5 only 6", "5 (US) (EUR)",
        "1(.)5", "5 整元", "1 (234)",
    ],
)  # fmt: skip
def test_what_is_no_amount_has_no_value(text: str) -> None:
    assert read_amount(text) is None


def test_currencies_differ_only_where_both_are_named() -> None:
    assert amounts_match("12.00", "12 EUR") and amounts_match("$12", "CAD 12") and amounts_match("", "null")
    assert amounts_match("12 (USD)", "$12") and not amounts_match("12 (USD)", "12 EUR")
    assert amounts_match("12 元整", "CNY 12") and not amounts_match("12 元整", "JPY 12")
    signs = {
        "NT$": "TWD",
        "MX$": "MXN",
        "₪": "ILS",
        "฿": "THB",
        "₱": "PHP",
        "₦": "NGN",
        "RM": "MYR",
        "Rp": "IDR",
        "R": "ZAR",
    }
    assert all(
        amounts_match(f"{sign}5", f"5 {code}") and not amounts_match(f"{sign}5", "5 EUR")
        for sign, code in signs.items()
    )
    assert not amounts_match("12 USD", "12 EUR") and not amounts_match("", "0") and not amounts_match("x", "x")

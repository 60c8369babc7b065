"""Dates and names as model selection and typed fields compare them: every rule of docs/select.md, and hostile text."""

import doctest
import time
from datetime import date

import pytest
from babel.dates import format_date
from hypothesis import given
from hypothesis import strategies as st
from script.make_date_words import LANGUAGES

from loupe.metrics import dates, field_values
from loupe.metrics.dates import dates_match, normalize_date
from loupe.metrics.field_values import is_absent, names_match, normalize_name

DAY = "2025-11-26"
ONE_DAY = """2025-11-26; 2025/11/26; 2025.11.26; 20251126; 26.11.2025; 26.11.25; 26. 11. 2025; 26/11/2025
26-11-2025; 11/26/2025; 11-26-2025; 26. November 2025; 26 November 2025; November 26, 2025
Nov 26th, 2025; Nov. 26 2025; 26th of November 2025; 26-Nov-2025; 26 novembre 2025
26 de noviembre de 2025; le 26 nov. 2025; NOVEMBER 26, 2025; 2025年11月26日; 2025년 11월 26일
２０２５－１１－２６; 2025年11月26日(水); 2025年11月26日 水曜日; Wednesday, 26 November 2025
Mittwoch, den 26. November 2025; Mi., 26.11.2025; 26.11.2025 (Mi); mar. 26 nov 2025
2025-11-26T10:15:30Z; 2025-11-26T10:15:30.5+01:00; 2025-11-26 10:15; 26.11.2025, 14.30 Uhr
2025‑11‑26; 26° novembre 2025; 2025年11月26日14時30分; 2025年11月26日(水) 午後2:30
2025년 11월 26일 14시 30분 5초; 2025年11月26日 下午2点
26.11.2025 um 14:30 Uhr; Nov 26, 2025 2:30 PM; Nov 26, 2025 at 2 pm; 26/11/2025 14h30"""


@pytest.mark.parametrize("text", [text.strip() for line in ONE_DAY.splitlines() for text in line.split(";")])
def test_every_accepted_spelling_names_the_same_day(text: str) -> None:
    assert normalize_date(f"  {text}\n") == DAY
    assert normalize_date(text, "mdy") == DAY


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("6.1.25", "2025-01-06"),
        ("1.1.69", "2069-01-01"),
        ("1.1.70", "1970-01-01"),
        ("Mar 3, 2025", "2025-03-03"),
        ("3. März 2025", "2025-03-03"),
        ("3. Mär. 2025", "2025-03-03"),
        ("3 août 2024", "2024-08-03"),
        ("1er janvier 2025", "2025-01-01"),
        ("3 mag 2024", "2024-05-03"),
        ("29.02.2024", "2024-02-29"),
    ],
)
def test_months_years_and_short_forms(text: str, expected: str) -> None:
    assert normalize_date(text) == expected


def test_the_order_decides_only_where_neither_number_can_be_the_day() -> None:
    assert (normalize_date("03/04/2025"), normalize_date("03/04/2025", "mdy")) == ("2025-04-03", "2025-03-04")
    assert (normalize_date("03.04.2025"), normalize_date("03.04.2025", "mdy")) == ("2025-04-03", "2025-04-03")
    assert normalize_date("11.26.2025") is None


OTHER_LANGUAGES = """2024. 5. 6.; 2024.5.6; '24. 5. 6.; 2024. 5. 6.(월); 6. 5. 2024.; 2024. 05. 06; 6.V.2024
2024. V. 6.; 6/V/2024; 6 V 24; 令和6年5月6日; 令和六年五月六日; R6.5.6; R06/05/06; 令6.5.6; ㋿6年5月6日(月)
令和6年(2024年)5月6日; 2024年（令和6年）5月6日; 西暦2024年5月6日; 二〇二四年五月六日; 民國113年5月6日
中華民國一一三年五月六日; 民國113.5.6; 113年5月6日; 113/05/06; 6 мая 2024 г.
6 МАЯ 2024 года; 6. května 2024; 6 maja 2024 r.; 6 травня 2024 р.; 2024. május 6.; 6 MAYIS 2024
2024 m. gegužės 6 d.; 2024. gada 6. maijs; 6. toukokuuta 2024; den 6 maj 2024; 6 de maio de 2024; 6 Μαΐου 2024
6 במאי 2024; 6 أيار 2024; ٦ مايو ٢٠٢٤; ٢٠٢٤/٥/٦; ۶ مهٔ ۲۰۲۴; ६ मई २०२४; 6 พฤษภาคม 2567; วันจันทร์ที่ 6 พฤษภาคม พ.ศ. 2567
Thứ Hai, ngày 6 tháng 5 năm 2024; 6 Mei 2024; \u200f6 במאי 2024\u200f; 6th day of May, 2024"""


@pytest.mark.parametrize("text", [text.strip() for line in OTHER_LANGUAGES.splitlines() for text in line.split(";")])
def test_dates_are_read_as_documents_of_many_countries_write_them(text: str) -> None:
    assert normalize_date(text) == "2024-05-06"


@given(
    st.sampled_from(LANGUAGES),
    st.sampled_from(["full", "long", "medium"]),
    st.dates(date(1970, 1, 1), date(2069, 12, 31)),
)
def test_a_date_in_any_language_names_its_day(language: str, form: str, day: date) -> None:
    assert dates_match(format_date(day, form, locale=language), day.isoformat())


def test_first_years_of_eras_and_names_that_mean_two_months() -> None:
    assert normalize_date("令和元年5月1日") == "2019-05-01" and normalize_date("昭和64年1月7日") == "1989-01-07"
    assert normalize_date("M45.7.29") == "1912-07-29" and normalize_date("大正15年12月24日") == "1926-12-24"
    polish, croatian = "5 listopada 2024", "5. listopada 2024."
    assert normalize_date(polish) == "2024-11-05"
    assert dates_match(polish, "2024-11-05") and dates_match(croatian, "2024-10-05")
    assert not dates_match(polish, "2024-09-05")


def test_dashes_and_words_for_nothing_are_one_rule() -> None:
    assert all(
        map(is_absent, ("", " ", "-", "--", "\u2013", "N/A", "n.a.", "None", "null", "NIL", "unknown", "not available"))
    )
    assert all(map(is_absent, ("NA", "na.", "N / A", "n/a.", "N. A.", "null.", "None.", "not  found.")))
    assert not any(
        map(is_absent, ("0", "no", "N", "A", "Na Ltd", "nan", "N A", ".", "null..", "nothing else", "None Ltd"))
    )
    assert not any(map(is_absent, ("-1", "not applicable here")))
    assert all(map(is_absent, ("[]", "{ }", "[{}, []]", '["", null]', '{"Street": null, "City": "N/A"}')))
    assert not any(map(is_absent, ("[0]", "[", "{}}", '{"sum": false}', "[" * 9_000, "[draft]", "[]" * 2)))


NO_DAY = """31.02.2025; 29.02.2025; 13/13/2025; 3 jui 2024; soon; 2025; 2025-13-01; 20251340; 0000-01-01
November 2025; 26.11.2025 or later"""


@pytest.mark.parametrize("text", [text.strip() for line in NO_DAY.splitlines() for text in line.split(";")])
def test_impossible_days_and_anything_else_match_nothing(text: str) -> None:
    assert normalize_date(text) is None
    assert not dates_match(text, text)


@pytest.mark.parametrize("text", ["", " ", "null", "None", "N/A", "unknown", "-"])
def test_a_stated_absence_is_empty(text: str) -> None:
    assert normalize_date(text) == ""


@pytest.mark.parametrize(
    ("prediction", "reference", "kind", "rule"),
    [
        ("Hoffmann GmbH", "Autohaus_Hoffmann_e.K.", "company", None),
        ("Autohaus Hoffmann", "Autohaus_Hoffmann_e.K.", "company", "exact"),
        ("Müller & Co. KG", "MUELLER GmbH", "company", "exact"),
        ("Café Straße Ltd.", "cafe strasse", "company", "exact"),
        ("Meyer und Co", "Meyer", "company", "exact"),
        ("Foo UG (haftungsbeschränkt)", "foo", "company", "exact"),
        ("GmbH & Co. KG", "AG", "company", None),
        ("Auto Haus Nord", "Autohaus Nord", "company", "nospace"),
        ("Autohaus Hofmann", "Autohaus Hoffmann AG", "company", "fuzzy"),
        ("Meier", "Meyer", "company", None),
        ("Nord Autohaus", "Autohaus Nord", "company", None),
        ("Dr. med. Anna Weber", "Weber, A.", "person", "tokens"),
        ("Prof. Dr. med. dent. Anna Weber", "Anna Weber, MD", "person", "exact"),
        ("Weber, Anna", "anna_weber", "person", "exact"),
        ("Weber Anna", "Anna Weber", "person", "tokens"),
        ("A. M. Weber", "Anna Maria Weber", "person", "tokens"),
        ("Ö. Weber", "Özlem Weber", "person", "tokens"),
        ("Ö. Weber", "Anna Weber", "person", None),
        ("A. M. Weber", "Anna Weber", "person", None),
        # What the rules decide: a title stands in front, and dotted forms are tokens of one letter each.
        ("Dr. Weber, Anna", "Anna Weber", "person", None),
        ("Foo S.A.", "Foo SA", "company", None),
        ("B. Weber", "Anna Weber", "person", None),
        ("Weber", "Anna Weber", "person", None),
        ("Anna Webex", "Anna Weber", "person", "fuzzy"),
        ("", "Anna Weber", "person", None),
        ("***", "Anna Weber", "person", None),
        ("", "", "company", "exact"),
    ],
)
def test_names_match_by_the_first_rule_that_holds(prediction: str, reference: str, kind: str, rule: str | None) -> None:
    assert names_match(prediction, reference, kind) == rule  # type: ignore[arg-type]
    assert names_match(reference, prediction, kind) == rule  # type: ignore[arg-type]


@given(st.dates(min_value=date(1000, 1, 1)))
def test_a_day_is_found_again_however_it_is_written(day: date) -> None:
    for form in (
        "{0:%d}.{0:%m}.{1:04}",
        "{1:04}-{0:%m}-{0:%d}",
        "{0:%B} {0:%d}, {1:04}",
        "{1:04}年{0.month}月{0.day}日",
    ):
        assert normalize_date(form.format(day, day.year)) == day.isoformat()


@given(
    st.text(max_size=150) | st.text("0123456789 ./-,:TZth年월janmrsept", max_size=40), st.sampled_from(["dmy", "mdy"])
)
def test_any_text_is_a_day_or_none_and_a_day_stays_itself(text: str, order: str) -> None:
    found = normalize_date(text, order)  # type: ignore[arg-type]
    if found is not None:
        assert normalize_date(found) == found
        assert not found or date.fromisoformat(found)


_WORDS = "Dr. med MD Anna A. Weber GmbH & Co. KG e.K. , _ Müller ﬁ ß İ"
_NAMES = st.text(max_size=60) | st.lists(st.sampled_from(_WORDS.split()), max_size=7).map(" ".join)


@given(_NAMES, _NAMES, st.sampled_from(["company", "person"]))
def test_names_compare_the_same_both_ways_and_equal_themselves(a: str, b: str, kind: str) -> None:
    assert names_match(a, b, kind) == names_match(b, a, kind)  # type: ignore[arg-type]
    assert names_match(a, a, kind) == "exact"  # type: ignore[arg-type]


@given(st.text(max_size=60))
def test_a_normalised_company_stays_itself(text: str) -> None:
    once = normalize_name(text, "company")
    assert normalize_name(once, "company") == once


@pytest.mark.parametrize("piece", ["2", " ", "a", "26.11.", "gmbh ", ",", "̖́", "(", "dr ", "ﷺ"])
def test_a_megabyte_costs_no_time(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    began = time.process_time()
    for other in (text, text[:-1] + "x", "Anna Weber"):
        names_match(text, other, "company")
        names_match(text, other, "person")
        dates_match(text, other)
    names_match(text[:2000], text[:1999] + "x", "person")
    assert time.process_time() - began < 1


@pytest.mark.parametrize("module", [dates, field_values])
def test_the_examples_are_true(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["0008-11-26", "26.11.0008", "November 26, 0999", "0008年11月26日"])
def test_no_document_is_of_a_year_before_1000(text: str) -> None:
    assert normalize_date(text) is None

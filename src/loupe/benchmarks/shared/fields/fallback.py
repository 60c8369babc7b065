"""Find fields as the variant `repair_regex` does: in JSON with any spelling of the keys, else tables, else lines.

Rules: docs/benchmarks/nanonets_kie.md.
"""

from __future__ import annotations

import html
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from loupe.benchmarks.shared.fields.json_answers import (
    Reading,
    is_cut,
    is_dear,
    parse_like_docext,
    repaired,
    text_like_docext,
)
from loupe.benchmarks.shared.table_answers.spellings import cells_of_row

_BLOCK_TAG = re.compile(r"</?(?:br|p|div|tr|li|ul|ol|h[1-6]|table)\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-z][^<>]*>", re.IGNORECASE)
_ROW = re.compile(r"<tr\b[^<>]*>", re.IGNORECASE)
_CELL = re.compile(r"<t[dh]\b[^<>]*>", re.IGNORECASE)
#: Where JSON with a text in it may begin.
_JSON = re.compile(r'[{\[]\s*["{\[]|\A\s*"')
_IMAGE = re.compile(r"!\[[^\[\]\n]*\](?:\([^()\n]*\))?")
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[\w-]*[ \t]*$", re.MULTILINE)
_BEFORE_LINE = re.compile(r"^\s*(?:#+\s*|[-+•]\s+)?")
_LABELLED = re.compile(r"([^:=]{1,60})\s?[:=]\s*(.*)")


def read_with_fallback(answer: str, names: Sequence[str]) -> Reading:
    """Fields of an answer, and per field whether it came from `json`, a `table`, or `regex`."""
    found, cut = parse_like_docext(answer), is_cut(answer)
    source, fields = "json", _from_object(found or {}, names)
    if not fields:
        answer = _text_of_json(answer, names)
        source, fields = "table", _from_tables(answer, names)
    if not fields:
        source, fields = "regex", _from_lines(answer, names)
    return Reading(fields, found is not None, dict.fromkeys(fields, source), cut=cut)


def _from_object(found: dict[str, object], names: Sequence[str]) -> dict[str, str]:
    """The expected keys of an object, in any case and punctuation; an object alone inside another is unwrapped."""
    asked = {canonical(name): name for name in names}
    if len(found) == 1:
        (key, inner), *_ = found.items()
        if isinstance(inner, dict) and canonical(str(key)) not in asked:
            found = inner
    fields: dict[str, str] = {}
    for key, value in found.items():
        name = asked.get(canonical(str(key)))
        if name is not None:
            fields.setdefault(name, text_like_docext(value))
    return fields


def _text_of_json(answer: str, names: Sequence[str]) -> str:
    """The texts in an answer that is JSON without an expected key, line by line; any other answer as it is.

    Texts and numbers under a key that names a field otherwise (`Total`, `invoice no`) stand behind that key.
    """
    begins = _JSON.search(answer)
    if begins is None:
        return answer
    start = begins.start()
    try:
        value, end = json.JSONDecoder().raw_decode(answer, start)
    except (ValueError, RecursionError):
        if is_dear(answer):
            return answer
        value, end = repaired(answer[start:]), 0
    try:
        text = "\n".join(_texts(value, fields_by_label(names)))
    except RecursionError:
        return answer
    # Braces in plain text, which repair would take for JSON, are no answer in JSON: most of it must be read.
    read = _letters(answer[start:end]) if end else _letters(text)
    return text if text and 2 * read >= _letters(answer) else answer


def _texts(value: object, by_label: Mapping[str, str], label: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(inner, by_label, f"{key}: " if canonical(str(key)) in by_label else "")
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, by_label, label)
    elif isinstance(value, str) or (label and value is not None):
        yield label + text_like_docext(value)


def _letters(text: str) -> int:
    return sum(map(str.isalnum, text))


def _from_tables(answer: str, names: Sequence[str]) -> dict[str, str]:
    """Rows of Markdown and HTML tables whose first cell names a field; the second is its value."""
    by_label = fields_by_label(names)
    fields: dict[str, str] = {}
    for label, value in (*_markdown_rows(answer), *_html_rows(answer)):
        name = by_label.get(canonical(label)) or by_label.get(canonical(label.replace("#", " no")))
        if name is not None:
            fields.setdefault(name, value)
    return fields


def _markdown_rows(answer: str) -> Iterator[tuple[str, str]]:
    for line in answer.splitlines():
        line = line.strip()
        if line.startswith("|"):
            cells = [_plain(cell) for cell in cells_of_row(line)]
            if len(cells) >= 2:
                yield cells[0], cells[1]


def _html_rows(answer: str) -> Iterator[tuple[str, str]]:
    for row in _ROW.split(answer)[1:]:
        cells = [_plain(cell.partition("</t")[0]) for cell in _CELL.split(row.partition("</tr")[0])[1:]]
        if len(cells) >= 2:
            yield cells[0], cells[1]


def _plain(cell: str) -> str:
    return html.unescape(_TAG.sub("", cell)).replace("**", "").replace("`", "").strip()


def plain_lines(answer: str) -> list[str]:
    """The lines of an answer without HTML tags, images, fences, heading marks, bullets, emphasis and blank lines."""
    text = _TAG.sub("", _BLOCK_TAG.sub("\n", _IMAGE.sub("", _FENCE.sub("", answer))))
    text = html.unescape(text).replace("*", "").replace("__", "").replace("`", "")
    lines = (_BEFORE_LINE.sub("", line).strip() for line in text.splitlines())
    return [line for line in lines if line]


def _from_lines(answer: str, names: Sequence[str]) -> dict[str, str]:
    """Field by field: a line `field_name: value` as it stands, else the pattern of the field, else its labels."""
    lines = plain_lines(answer)
    by_label = fields_by_label(names)
    named: dict[str, str] = {}
    labelled: dict[str, str] = {}
    for line in lines:
        found = _LABELLED.match(line)
        if found is None:
            continue
        label, value = found[1].strip(), found[2].strip()
        # Nobody prints such a name on a document: the engine wrote it, and the value is all that follows.
        if label in names and "_" in label:
            named.setdefault(label, value)
        elif canonical(label) in by_label:
            labelled.setdefault(by_label[canonical(label)], value)
    fields = {}
    for name in names:
        pattern = PATTERNS.get(name)
        if name in named and name not in SEVERAL_LINES:
            value = named[name]
        else:
            value = pattern(lines) if pattern else labelled.get(name, named.get(name, ""))
        if value:
            fields[name] = value
    return fields


#: Field → labels, besides its own name; in canonical spelling.
LABELS: Mapping[str, tuple[str, ...]] = {
    "date": ("invoice_date", "receipt_date", "tarikh"),
    "doc_no_receipt_no": (
        "invoice_no", "inv_no", "receipt_no", "doc_no", "bill_no", "document_no", "cash_bill", "tax_invoice_no",
        "slip_no", "order_no", "cb_no", "cb",
    ),
    "seller_address": ("address",),
    "seller_gst_id": ("gst_id", "gst_no", "gst_reg_no", "gstin", "tax_id"),
    "seller_name": ("seller", "company", "company_name", "store", "store_name"),
    "seller_phone": ("tel", "tel_no", "telephone", "phone", "phone_no", "hp", "contact"),
    "total_amount": ("grand_total", "amount_due", "nett_total", "total"),
    "total_tax": ("gst", "tax_amount", "vat", "sst", "tax"),
    "name_of_deceased": ("name", "full_name"),
    "place_of_death_county": ("county", "county_of_death"),
    "place_of_death_city": ("city", "city_of_death"),
    "state_file": ("state_file_no", "state_file_number"),
    "deceased_gender": ("gender", "sex"),
    "deceased_race": ("race", "color_or_race"),
    "deceased_status": ("status", "marital_status"),
    "deceased_age": ("age",),
    "birth_place": ("birthplace", "place_of_birth"),
    "father_name": ("father", "name_of_father"),
    "mother_name": ("mother", "maiden_name_of_mother"),
}  # fmt: skip


def canonical(label: str) -> str:
    """Lower case, everything that is no letter or digit one underscore: "State file #" is `state_file`."""
    return re.sub(r"[\W_]+", "_", label.lower()).strip("_")


def fields_by_label(names: Iterable[str]) -> dict[str, str]:
    """Canonical label → field name as asked for; the names themselves come first."""
    names = tuple(names)
    found = {canonical(name): name for name in names}
    for name in names:
        for label in LABELS.get(canonical(name), ()):
            found.setdefault(label, name)
    return found


_DATE_LABEL = re.compile(r"\b(?:invoice date|date|tarikh)\s*:\s*(.*)", re.IGNORECASE)
_DATE = re.compile(
    r"\b(?:\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4}|\d{4}-\d{2}-\d{2}|\d{1,2} [A-Za-z]{3,9},? \d{2,4})(?!\d)"
)  # fmt: skip
_NUMBER_LABEL = re.compile(
    r"\b(?:(?:tax[ ._]?)?invoice|inv|receipt|doc|bill|document|cb)(?:[ ._]{0,2}(?:no|number)\b[.#]?|[ ._]{0,2}#)"
    r"|\bcash[ ._]?bill\b[.#]?",
    re.IGNORECASE,
)
#: Numbers that stand for that of the document if it has no other.
_OTHER_NUMBER_LABEL = re.compile(r"\b(?:slip|order)(?:[ ._]{0,2}(?:no|number)\b[.#]?|[ ._]{0,2}#)", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![A-Z0-9])[A-Z0-9][A-Z0-9/_-]{2,}", re.IGNORECASE)
#: Directly behind its label a number may be short; on the next line only if it is all of it.
_SHORT_NUMBER = re.compile(r"[A-Z]?[0-9][A-Z0-9]?(?![A-Z0-9/_.,-]*[A-Z0-9])", re.IGNORECASE)
_NAME_LABEL = re.compile(r"(?:seller[ _]name|seller|company(?: name)?|store(?: name)?)\s*:\s*(.+)", re.IGNORECASE)
#: How the number of a company or of a taxpayer begins.
_REGISTRATION = re.compile(
    r"""
    \( \s* [A-Z-]{0,4} \d
    | \b (?: (?:CO|COMPANY|BUSINESS|ROC|GST|SST|VAT|TAX) \b [ .]{0,3} )?
      REG (?:ISTRATION|N|D)? [ .]{0,3} (?:NO|NUMBER|ID) \b
    | \b (?:CO|COMPANY|BUSINESS|ROC|SSM|SST|VAT|TIN) [ .]{0,3} (?:NO|NUMBER|ID) \b
    | \b (?:GST|GSTIN|TAX[ ]?ID) \b
    | (?:사업자)? 등록번호
    """,
    re.IGNORECASE | re.VERBOSE,
)
#: What is no part of a name any more.
_NAME_END = re.compile(
    rf"{_REGISTRATION.pattern} | \b(?:TEL|TELEPHONE|PHONE|FAX) [ .]{{0,3}} [:+(\d] | [ ]-[ ] | \|",
    re.IGNORECASE | re.VERBOSE,
)
#: Lines of such words alone, with a number or without, say what the document is, not who wrote it.
_HEADINGS = (
    "invoice|receipt|bill|sales?|memo|slip|voucher|quotation|note|order|copy|original|duplicate|reprint"
    "|invois|resit|bil"  # Malay, as on many receipts of the data set
)
_HEADING_WORDS = re.compile(
    rf"{_HEADINGS}|tax|cash|credit|debit|official|simplified|pro|forma|proforma|delivery|retail|vat|gst|customer"
    r"|merchant|of|for|and|no|number|cukai|rasmi|\w*\d\w*",
    re.IGNORECASE,
)
_HEADING = re.compile(rf"\b(?:{_HEADINGS})\b", re.IGNORECASE)
#: Before the number of a company they say whose it is.
_WHOSE = re.compile(
    r"buyer|customer|client|supplier|vendor|seller|company|business|shop|store|our|your|tax", re.IGNORECASE
)
_WORD = re.compile(r"\w+")
_ANY_LABEL = re.compile(r"[\w .#/()]{1,40}:")
_MARKUP = re.compile(r"[|<>{}\[\]#=-]|```")
_ADDRESS_LABEL = re.compile(r"(?:seller[ _])?address\s*:\s*(.*)", re.IGNORECASE)
_ADDRESS_END = re.compile(r"\b(?:tel|telephone|phone|fax|gst|date|tarikh)\b", re.IGNORECASE)
_GST_LABEL = re.compile(
    r"\bgst[ ._]{0,2}(?:id|no|reg(?:istration)?[ ._]{0,2}no)\b|\bgstin\b|\btax[ ._]?id\b", re.IGNORECASE
)
_GST = re.compile(r"(?<![A-Z0-9-])[A-Z0-9-]{8,15}(?![A-Z0-9-])")
_PHONE_LABEL = re.compile(r"\b(?:tel|telephone|phone|hp|h/p|contact)\b", re.IGNORECASE)
_PHONE = re.compile(r"[+(]?\d[\d ()-]{6,}")
_STRONG_TOTAL = re.compile(r"\b(?:grand total|total amount|amount due|nett? total)\b", re.IGNORECASE)
_TOTAL = re.compile(r"(?<!sub[ -])\btotal\b(?!\s*(?:tax|gst|qty|quantity))", re.IGNORECASE)
_TAX = re.compile(
    r"\b(?:total tax|tax amount|vat|sst|gst|tax)\b"
    r"(?![ ._]{0,2}(?:id|no|number|reg|invoice|inv|receipt|code|type|rate|summary|payer)\w*)"
    r"(?: ?@? ?\(?\d{1,2}(?:\.\d{1,2})? ?%\)?)?",
    re.IGNORECASE,
)
_TAXES = r"(?:gst|sst|vat|tax)\b"
_RATE = r"\W{0,3}(?:\d{1,2}(?:\.\d{1,2})?\s?%\W{0,3})?"
#: A total with the tax or without it, and no tax: `(Inclusive of GST)`, `before tax`, `Total (GST incl.)`.
_TAXED_TOTAL = re.compile(
    rf"\b(?:incl(?:usive|uding)?|excl(?:usive|uding)?|before|after|without|w/o|net)\b\W{{0,3}}(?:of\s)?{_RATE}{_TAXES}"
    rf"|\b(?:total|sales?|amount|price|nett?|due|payable)\b.{{0,40}}?{_TAXES}{_RATE}(?:incl|excl)(?:usive|uding)?\b",
    re.IGNORECASE,
)
_AMOUNT = re.compile(r"(?:(?<![A-Z])[A-Z]{2,3}|[$€£])?\s?\d[\d,]*\.?\d*")
#: After a bare whole number: a word that is no currency.
_NAME_GOES_ON = re.compile(
    r"\s*(?!(?:RM|MYR|SGD|USD|EUR|GBP|INR|RS|IDR|RP|THB|PHP|VND|JPY|CNY|RMB|HKD|TWD|NTD|KRW|WON|AUD|NZD|CAD|CHF|AED|only)\b)"
    r"[^\W\d_]",
    re.IGNORECASE,
)
#: Lines after the name that may be an address.
_ADDRESS_LINES = 6


def find_date(lines: Sequence[str]) -> str:
    """The date beside its label, else the first date on the page."""
    for line in lines:
        labelled = _DATE_LABEL.search(line)
        if labelled:
            found = _DATE.search(labelled[1])
            return found[0] if found else labelled[1].strip()
    return next((found[0] for line in lines if (found := _DATE.search(line))), "")


def find_number(lines: Sequence[str]) -> str:
    """The token with a digit that follows the label of a document number, on its line or the next."""

    def value(rest: str) -> str:
        return next((token for token in _NUMBER.findall(rest) if any(char.isdigit() for char in token)), "")

    def short_or_long(rest: str) -> str:
        short = _SHORT_NUMBER.match(rest)
        return short[0] if short else value(rest)

    def below(line: str) -> str:
        short = _SHORT_NUMBER.fullmatch(line.strip())
        return short[0] if short else value(line)

    labels = (_NUMBER_LABEL, _OTHER_NUMBER_LABEL)
    return next(filter(None, (_after_label(lines, label, short_or_long, below) for label in labels)), "")


def find_name(lines: Sequence[str]) -> str:
    """The name beside its label, else the first line that is neither markup nor a label; no registration number."""
    for line in lines:
        labelled = _NAME_LABEL.match(line)
        if labelled:
            return _cut_name(labelled[1])
    index = _name_line(lines)
    return "" if index is None else _cut_name(lines[index])


def _name_line(lines: Sequence[str]) -> int | None:
    return next((index for index, line in enumerate(lines) if _is_name(line)), None)


def _is_name(line: str) -> bool:
    return not (_MARKUP.match(line) or _is_label(line) or _is_heading(line)) and any(map(str.isalpha, line))


def _is_label(line: str) -> bool:
    """True if words and a colon begin the line; a colon in the company's number behind a name does not count."""
    if _NUMBER_LABEL.match(line):
        return True
    label = _ANY_LABEL.match(line)
    if label is None:
        return False
    number = _NAME_END.search(line, 1, label.end())
    if number is None or _REGISTRATION.match(line):
        return True
    before = line[: number.start()]
    return all(map(_WHOSE.fullmatch, _WORD.findall(before))) or _is_heading(before)


def _is_heading(line: str) -> bool:
    return _HEADING.search(line) is not None and all(map(_HEADING_WORDS.fullmatch, _WORD.findall(line)))


def _cut_name(text: str) -> str:
    end = _NAME_END.search(text, 1)
    name = text[: end.start()] if end else text
    if end and name.count("(") > name.count(")"):
        name = name[: name.rindex("(")]
    return name.strip(" ,;:-").rstrip(" ([{,;:-")


def find_address(lines: Sequence[str]) -> str:
    """The address beside its label with the lines that go on with it, else the lines after the name."""
    for index, line in enumerate(lines):
        labelled = _ADDRESS_LABEL.match(line)
        if labelled:
            return " ".join(filter(None, [labelled[1].strip(), *_address_lines(lines[index + 1 :])]))
    index_of_name = _name_line(lines)
    if index_of_name is None:
        return ""
    below = itertools.dropwhile(_is_between_name_and_address, lines[index_of_name + 1 :])
    return " ".join(_address_lines(list(below)))


def _is_between_name_and_address(line: str) -> bool:
    return any(map(_REGISTRATION.match, (line, line.lstrip("([ ")))) or _is_heading(line)


def _address_lines(lines: Sequence[str]) -> list[str]:
    found: list[str] = []
    for line in lines[:_ADDRESS_LINES]:
        if _ADDRESS_END.search(line) or _ANY_LABEL.match(line):
            break
        found.append(line)
    return found


def find_gst_id(lines: Sequence[str]) -> str:
    """The token of 8 to 15 capitals, digits and dashes that follows the label of a tax number."""

    def value(rest: str) -> str:
        return next((token for token in _GST.findall(rest) if any(char.isdigit() for char in token)), "")

    return _after_label(lines, _GST_LABEL, value)


def find_phone(lines: Sequence[str]) -> str:
    """The telephone number that follows its label."""

    def value(rest: str) -> str:
        found = _PHONE.search(rest)
        return found[0].rstrip(" -(") if found else ""

    return _after_label(lines, _PHONE_LABEL, value)


def find_total(lines: Sequence[str]) -> str:
    """The amount on the last line that names the grand total, else on the last that names a total (not a sub total)."""
    backwards = list(range(len(lines)))[::-1]
    for label in (_STRONG_TOTAL, _TOTAL):
        for index in backwards:
            found = label.search(lines[index])
            if found and (amount := _amount(lines[index][found.end() :]) or _next_amount(lines, index)):
                return amount
    return ""


def find_tax(lines: Sequence[str]) -> str:
    """The amount that follows the label of a tax; a rate (`GST 6%`) is no amount, a total with its tax no tax."""
    return _after_label([line for line in lines if not _TAXED_TOTAL.search(line)], _TAX, _amount)


def _next_amount(lines: Sequence[str], index: int) -> str:
    """The amount of the following line, if this line is nothing else."""
    following = lines[index + 1] if index + 1 < len(lines) else ""
    amount = _amount(following)
    return amount if amount == following.strip() else ""


def _amount(rest: str) -> str:
    """The first amount with a decimal point, else the first one; not a number within a name (`24 HOUR MART`)."""
    found = [each[0].strip().rstrip(".,") for each in _AMOUNT.finditer(rest) if not _is_in_name(each, rest)]
    return next((amount for amount in found if "." in amount), found[0] if found else "")


def _is_in_name(amount: re.Match[str], line: str) -> bool:
    """True if a word that is no currency follows a bare whole number."""
    return amount[0].strip().rstrip(".,").isdigit() and _NAME_GOES_ON.match(line, amount.end()) is not None


def _after_label(
    lines: Sequence[str],
    label: re.Pattern[str],
    value: Callable[[str], str],
    below: Callable[[str], str] | None = None,
) -> str:
    """The first value that follows the label on its line, or alone stands on the next line (where `below` reads it)."""
    for index, line in enumerate(lines):
        labelled = label.search(line)
        if labelled is None:
            continue
        rest = line[labelled.end() :].strip(" :.#")
        following = lines[index + 1] if not rest and index + 1 < len(lines) else ""
        found = value(rest) or (below or value)(following)
        if found:
            return found
    return ""


#: The finder of each field; fields without one are found by their labels alone.
PATTERNS: Mapping[str, Callable[[Sequence[str]], str]] = {
    "date": find_date,
    "doc_no_receipt_no": find_number,
    "seller_name": find_name,
    "seller_address": find_address,
    "seller_gst_id": find_gst_id,
    "seller_phone": find_phone,
    "total_amount": find_total,
    "total_tax": find_tax,
}
#: Fields whose value may go on in the lines below the one that names it.
SEVERAL_LINES = frozenset({"seller_address"})

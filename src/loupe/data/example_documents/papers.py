"""Thirty invoices and thirty other papers: what each says, how it looks, and the truth about it; all from one seed."""

from __future__ import annotations

import hashlib
import io
import random
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

from loupe.data.example_documents.pdf_page import PdfSheet
from loupe.data.example_documents.words import CUSTOMERS, LANGUAGES, OTHERS, Language
from loupe.errors import UnsafeFileError
from loupe.files.foreign import open_data
from loupe.types import PdfPage

COUNT = 30
_SEED = 20261122
#: Every third paper is a PDF, the others are scans.
_KINDS = ("pdf", "png", "jpg")


@dataclass(frozen=True, slots=True)
class Paper:
    """A document: its file name, its truth by field (empty: no invoice), and how to draw it."""

    name: str
    kind: str
    language: str
    truth: dict[str, str] = field(default_factory=dict)
    sheet: Callable[[], PdfSheet] = PdfSheet
    seed: int = 0

    @property
    def is_invoice(self) -> bool:
        """Whether it is an invoice."""
        return bool(self.truth)


@dataclass(frozen=True, slots=True)
class _Invoice:
    language: Language
    seller: str
    customer: str
    number: str
    day: str
    due: str
    items: tuple[tuple[str, str], ...]
    net: str
    tax: str
    total: str
    font: str


def papers() -> Iterator[Paper]:
    """All of them, invoices first; nothing is drawn yet."""
    for number in range(COUNT):
        yield _invoice(number)
    for number in range(COUNT):
        yield _other(number)


def draw_papers(invoices: Path, others: Path) -> dict[Path, bytes]:
    """Every paper as a file in its folder, by path; nothing is written."""
    return {(invoices if one.is_invoice else others) / f"{one.name}.{one.kind}": drawn(one) for one in papers()}


def drawn(paper: Paper) -> bytes:
    """The file: a PDF, or a scan of one, gray and a little askew."""
    data = paper.sheet().data()
    if paper.kind == "pdf":
        return data
    import numpy as np
    from PIL import Image, ImageFilter, PngImagePlugin

    from loupe.data.pages import load_page

    with tempfile.NamedTemporaryFile(suffix=".pdf") as file:
        file.write(data)
        file.flush()
        page = load_page(PdfPage(Path(file.name)), dpi=110).convert("L")
    generator = np.random.default_rng(paper.seed)
    turned = page.rotate(float(generator.uniform(-0.8, 0.8)), Image.Resampling.BICUBIC, fillcolor=255)
    worn = np.asarray(turned.filter(ImageFilter.GaussianBlur(float(generator.uniform(0.3, 0.9)))), np.float32)
    pixels = np.clip(18 + worn * 0.88 + generator.normal(0, 7, worn.shape), 0, 255)
    scan = Image.fromarray(pixels.astype(np.uint8))
    target = io.BytesIO()
    if paper.kind == "png":
        # Eight grays: enough for type, and paper without its grain is small.
        info = PngImagePlugin.PngInfo()
        info.add_text("Comment", _mark(paper))
        Image.fromarray((np.clip(pixels + 12, 0, 255) // 32 * 32).astype(np.uint8)).save(target, "PNG", pnginfo=info)
    else:
        scan.save(target, "JPEG", quality=int(generator.integers(35, 70)), comment=_mark(paper))
    return target.getvalue()


def is_drawn(paper: Paper, file: Path) -> bool:
    """Whether a file is this paper and no other document of its name.

    A PDF is compared to the byte. The bytes of a scan depend on the versions of the libraries that drew it, so it
    carries a mark: its name, and a digest of the page that was scanned, which is the same everywhere.
    """
    try:
        with open_data(file) as opened:
            start = opened.read(1_000_000)
    except (OSError, UnsafeFileError):
        return False
    return start == paper.sheet().data() if file.suffix.lower() == ".pdf" else _mark(paper).encode() in start


def _mark(paper: Paper) -> str:
    return f"loupe example {paper.name} {hashlib.sha256(paper.sheet().data()).hexdigest()}"


def _invoice(number: int) -> Paper:
    chance = random.Random(_SEED + number)
    language = LANGUAGES[number % len(LANGUAGES)]
    seller, day = chance.choice(language.sellers), date(2026, 1, 5) + timedelta(days=chance.randrange(300))
    prices = [chance.randrange(400, 90_000) for _ in range(chance.randrange(2, 5))]
    if number % 7 == 0:
        prices.append(chance.randrange(100_000, 900_000))
    net = sum(prices)
    tax = round(net * 0.19)
    style = chance.choice(language.date_styles)
    ident = chance.choice((f"{day.year}-{chance.randrange(100, 999)}", f"RE {chance.randrange(10_000, 99_999)}"))
    wares = chance.sample(language.wares, min(len(prices), len(language.wares)))
    content = _Invoice(
        language=language,
        seller=seller,
        customer=chance.choice(CUSTOMERS),
        number=ident,
        day=language.date(day, style),
        due=language.date(day + timedelta(days=30), style),
        items=tuple((ware, language.amount(price)) for ware, price in zip(wares, prices, strict=False)),
        net=language.amount(net),
        tax=language.amount(tax),
        total=language.amount(net + tax),
        font=chance.choice(("sans", "serif", "mono")),
    )
    layout = (_letterhead, _form, _receipt)[(number + number // 3) % 3]
    truth = {"date": day.isoformat(), "total": content.total, "company": seller, "number": ident}
    kind = _KINDS[number % len(_KINDS)]
    return Paper(f"invoice-{number + 1:02d}", kind, language.code, truth, lambda: layout(content), _SEED + number)


def _other(number: int) -> Paper:
    chance = random.Random(_SEED + 1000 + number)
    language = LANGUAGES[number % len(LANGUAGES)]
    title, lines = OTHERS[language.code][number // len(LANGUAGES) % len(OTHERS[language.code])]
    day = date(2026, 1, 5) + timedelta(days=chance.randrange(300))
    known = {
        "seller": chance.choice(language.sellers),
        "date": language.date(day, chance.choice(language.date_styles)),
        "amount": language.amount(chance.randrange(1_000, 90_000)),
        "person": chance.choice(CUSTOMERS[1:]),
    }
    filled = [line.format(**known) for line in lines]
    font = chance.choice(("sans", "serif", "mono"))

    def sheet() -> PdfSheet:
        page = PdfSheet()
        page.text(80, 110, title, font=_bold(font), size=20)
        for row, line in enumerate(filled):
            page.text(80, 160 + 24 * row, line, font=font, size=12)
        return page

    return Paper(f"paper-{number + 1:02d}", _KINDS[number % 3], language.code, {}, sheet, _SEED + 1000 + number)


def _bold(font: str) -> str:
    return {"sans": "bold", "serif": "serif-bold", "mono": "mono-bold"}[font]


def _letterhead(content: _Invoice) -> PdfSheet:
    """The seller large at the top, numbers at the right, a table of wares, totals below it."""
    page, words, font = PdfSheet(), content.language, content.font
    page.text(60, 80, content.seller, font=_bold(font), size=20)
    page.line(60, 92, 535, 92, width=1.5)
    page.text(60, 150, content.customer, font=font, size=11)
    for row, (label, value) in enumerate(
        ((words.number, content.number), (words.day, content.day), (words.due, content.due))
    ):
        page.text(330, 150 + 18 * row, f"{label}:", font=font, size=11)
        page.text(450, 150 + 18 * row, value, font=font, size=11)
    page.text(60, 250, words.invoice, font=_bold(font), size=16)
    return _items(page, content, top=290)


def _form(content: _Invoice) -> PdfSheet:
    """Labels and values in lines, the seller in a gray box."""
    page, words, font = PdfSheet(), content.language, content.font
    page.text(60, 90, words.invoice.upper(), font=_bold(font), size=22)
    page.box(300, 60, 235, 60)
    page.text(312, 82, content.seller, font=_bold(font), size=11)
    page.text(312, 102, "www.example.org", font=font, size=9)
    rows = ((words.number, content.number), (words.day, content.day), (words.customer, content.customer))
    for row, (label, value) in enumerate(rows):
        page.text(60, 160 + 20 * row, f"{label}: {value}", font=font, size=11)
    return _items(page, content, top=250)


def _receipt(content: _Invoice) -> PdfSheet:
    """A narrow column; the seller and the day stand at the foot."""
    page, words, font = PdfSheet((400, 620)), content.language, content.font
    page.text(40, 60, f"{words.invoice} {content.number}", font=_bold(font), size=16)
    page.text(40, 90, f"{words.customer}: {content.customer}", font=font, size=10)
    for row, (ware, price) in enumerate(content.items):
        page.text(40, 130 + 20 * row, ware, font=font, size=10)
        page.text(280, 130 + 20 * row, price, font=font, size=10)
    bottom = 150 + 20 * len(content.items)
    page.line(40, bottom - 10, 360, bottom - 10)
    for row, (label, value) in enumerate(
        ((words.net, content.net), (f"{words.tax} 19 %", content.tax), (words.total, content.total))
    ):
        page.text(40, bottom + 10 + 20 * row, label, font=_bold(font) if row == 2 else font, size=11)
        page.text(280, bottom + 10 + 20 * row, value, font=_bold(font) if row == 2 else font, size=11)
    page.text(40, 540, words.thanks, font=font, size=10)
    page.text(40, 570, f"{content.seller}, {content.day}", font=font, size=10)
    return page


def _items(page: PdfSheet, content: _Invoice, *, top: float) -> PdfSheet:
    """The table of wares, then net, tax and total, then thanks."""
    words, font = content.language, content.font
    page.line(60, top - 14, 535, top - 14)
    page.text(60, top, words.ware, font=_bold(font), size=10)
    page.text(430, top, words.price, font=_bold(font), size=10)
    page.line(60, top + 6, 535, top + 6)
    for row, (ware, price) in enumerate(content.items, 1):
        page.text(60, top + 4 + 20 * row, ware, font=font, size=10)
        page.text(430, top + 4 + 20 * row, price, font=font, size=10)
    bottom = top + 40 + 20 * len(content.items)
    for row, (label, value) in enumerate(
        ((words.net, content.net), (f"{words.tax} 19 %", content.tax), (words.total, content.total))
    ):
        page.text(300, bottom + 20 * row, label, font=_bold(font) if row == 2 else font, size=11)
        page.text(430, bottom + 20 * row, value, font=_bold(font) if row == 2 else font, size=11)
    page.text(60, 760, words.thanks, font=font, size=10)
    return page

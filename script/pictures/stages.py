"""The drawing of docs/benchmarks/omnidocbench-parity.md: the stages of the match."""

from __future__ import annotations

from html import escape

#: Ink, muted ink, accent, surface of a box, rule.
COLOURS = {
    "light": ("#1f2328", "#59636e", "#0a58a8", "#f3f7fc", "#9db4cc"),
    "dark": ("#f0f6fc", "#a3adb8", "#79b8ff", "#16202c", "#40576f"),
}
#: What goes in; the stages with what each does, and what leaves there; what comes out.
SOURCES = (
    ("The answer, Markdown", "cut into tables, formulas, texts"),
    ("The ground truth, JSON", "blocks; cut ones are joined"),
)
STAGES = (
    (
        "Tables with tables",
        "least total distance; cells of tables without a partner go on as text",
        "TEDS, TEDS-S, edit distance",
    ),
    ("Headers, captions, page numbers", "take the pieces nearer than 0.25 to them", "never scored"),
    ("Run merge", "neighbouring pieces that make one block are joined", ""),
    ("Assignment", "each block with one piece at the least total distance, at most 0.7", ""),
    ("Containment", "further blocks found inside a piece, nearer than 0.4", ""),
    ("Leftovers", "blocks and pieces that are left are paired, however unlike", "what is left: never scored"),
)
RESULTS = (
    ("Text", "edit distance"),
    ("Formulas", "CDM, edit distance"),
    ("Reading order", "edit distance"),
)
WIDTH, BOX, GAP, MARGIN = 900, 50, 24, 12
MAIN = 600


def stages(scheme: str) -> str:
    """The drawing as SVG, "light" or "dark"; no script, no fonts of its own, nothing from elsewhere."""
    ink, muted, accent, surface, rule = COLOURS[scheme]
    parts: list[str] = []
    half = (MAIN - GAP) // 2
    top = MARGIN
    for index, source in enumerate(SOURCES):
        parts += [
            _box(MARGIN + index * (half + GAP), top, half, *source),
            _arrow(MARGIN + half // 2 + index * (half + GAP), top + BOX),
        ]
    for number, (title, detail, leaves) in enumerate(STAGES, 1):
        top += BOX + GAP
        parts += [_box(MARGIN, top, MAIN, f"{number} · {title}", detail)]
        if number < len(STAGES):
            parts.append(_arrow(MARGIN + MAIN // 2, top + BOX))
        if leaves:
            parts.append(_exit(MARGIN + MAIN, top + BOX // 2, leaves))
    third = (MAIN - 2 * GAP) // 3
    for index, result in enumerate(RESULTS):
        left = MARGIN + index * (third + GAP)
        parts += [_arrow(left + third // 2, top + BOX), _box(left, top + BOX + GAP, third, *result)]
    height = top + 2 * BOX + GAP + MARGIN
    style = (
        f"text{{font:14px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;fill:{muted}}}"
        f".t{{font-weight:600;font-size:15px;fill:{ink}}}.o{{fill:{accent};font-weight:600}}"
        f"rect{{fill:{surface};stroke:{rule}}}path{{fill:none;stroke:{accent};stroke-width:1.5}}"
    )
    names = "; ".join(title for title, *_ in STAGES)
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
        f"<title>Stages of the match: {escape(names)}</title><style>{style}</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def _box(left: int, top: int, width: int, title: str, detail: str) -> str:
    return (
        f'<rect x="{left}" y="{top}" width="{width}" height="{BOX}" rx="6"/>'
        f'<text class="t" x="{left + 14}" y="{top + 21}">{escape(title)}</text>'
        f'<text x="{left + 14}" y="{top + 40}">{escape(detail)}</text>'
    )


def _arrow(middle: int, top: int) -> str:
    end = top + GAP - 3
    return f'<path d="M{middle} {top + 2}V{end}m-4 -5l4 5l4 -5"/>'


def _exit(left: int, middle: int, text: str) -> str:
    arrow = f'<path d="M{left + 2} {middle}h22m-5 -4l5 4l-5 4"/>'
    return f'{arrow}<text class="o" x="{left + 32}" y="{middle + 5}">{escape(text)}</text>'

"""One page of PDF, written by hand: texts in the fonts that every reader has, lines and filled boxes.

Source: ISO 32000-1, 9.6.2.2 (the standard 14 fonts) and 7.5 (file structure). Places count in points from the top left.
"""

from __future__ import annotations

from dataclasses import dataclass, field

A4 = (595.0, 842.0)
FONTS = {
    "sans": "Helvetica",
    "bold": "Helvetica-Bold",
    "serif": "Times-Roman",
    "serif-bold": "Times-Bold",
    "mono": "Courier",
    "mono-bold": "Courier-Bold",
}


@dataclass(slots=True)
class PdfSheet:
    """A page to draw on; `data` is the file, `texts` what was written, in order."""

    size: tuple[float, float] = A4
    texts: list[str] = field(default_factory=list)
    _content: list[bytes] = field(default_factory=list)

    def text(self, x: float, y: float, text: str, *, font: str = "sans", size: float = 10) -> None:
        """A line of text whose baseline starts at (x, y); what Windows-1252 lacks becomes a question mark."""
        self.texts.append(text)
        raw = text.encode("cp1252", "replace")
        for char in (b"\\", b"(", b")"):
            raw = raw.replace(char, b"\\" + char)
        place = f"/{font} {size:g} Tf 1 0 0 1 {x:g} {self.size[1] - y:g} Tm (".encode()
        self._content.append(b"BT " + place + raw + b") Tj ET")

    def line(self, x1: float, y1: float, x2: float, y2: float, *, width: float = 0.7) -> None:
        """A straight line."""
        height = self.size[1]
        self._content.append(f"{width:g} w {x1:g} {height - y1:g} m {x2:g} {height - y2:g} l S".encode())

    def box(self, x: float, y: float, width: float, height: float, *, gray: float = 0.9) -> None:
        """A filled rectangle whose upper left corner is (x, y)."""
        low = self.size[1] - y - height
        self._content.append(f"q {gray:g} g {x:g} {low:g} {width:g} {height:g} re f Q".encode())

    def data(self) -> bytes:
        """The file; the same drawing gives the same bytes."""
        stream = b"\n".join(self._content)
        fonts = " ".join(f"/{name} {number} 0 R" for number, name in enumerate(FONTS, 5))
        box = f"[0 0 {self.size[0]:g} {self.size[1]:g}]"
        objects = [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            f"<</Type/Page/Parent 2 0 R/MediaBox{box}/Resources<</Font<<{fonts}>>>>/Contents 4 0 R>>".encode(),
            f"<</Length {len(stream)}>>stream\n".encode() + stream + b"\nendstream",
            *(
                f"<</Type/Font/Subtype/Type1/BaseFont/{name}/Encoding/WinAnsiEncoding>>".encode()
                for name in FONTS.values()
            ),
        ]
        found = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"
        places = []
        for number, content in enumerate(objects, 1):
            places.append(len(found))
            found += f"{number} 0 obj".encode() + content + b"endobj\n"
        table = "".join(f"{place:010d} 00000 n \n" for place in places)
        head = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
        tail = f"trailer<</Size {len(objects) + 1}/Root 1 0 R>>\nstartxref\n{len(found)}\n%%EOF\n"
        return found + head.encode() + tail.encode()

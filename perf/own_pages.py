"""Pages of ours in the published layouts of iam_lines and fox, to run engines on where the real data is not at hand.

Usage: python perf/own_pages.py FOLDER     then: loupe run iam_lines --data FOLDER/iam_lines, the same with fox

Writes 20 jittered lines (`iam_lines/data/test.parquet`, spaces before punctuation as in IAM) and 8 dense pages
(`fox/focus_benchmark_test.zip`; 4 Chinese ones only where a Noto CJK font is installed). All text is put together from
the words below. The figures in docs/benchmarks/iam_lines.md and fox.md come from here: they say that the whole line
works, and nothing about the real sets.
"""

from __future__ import annotations

import io
import json
import random
import re
import sys
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import typst
from PIL import Image, ImageDraw, ImageFilter, ImageFont

LINES, PAGES = 20, 4
WHO = ("the harbour master", "a young surveyor", "my neighbour", "the last clerk", "nobody on the pier", "an old pilot")
DID = ("counted", "repaired", "described", "forgot", "measured", "sold", "painted", "borrowed", "wrapped up")
WHAT = ("seven lanterns", "the brass compass", "a crate of onions", "two ledgers", "the tide table", "every second oar")
WHERE = ("before noon", "near the old mill", "in the rain", "without a word", "for the 1931 fair", "at twenty past six")
THEN = ("and was paid in apples", "but told no one", "so the bell rang twice", "while the kettle sang", "as agreed")
ZH_WHO = ("老船长", "年轻的测量员", "我的邻居", "码头的看守人", "从山里来的客人", "最后一位书记员")
ZH_DID = ("数完了", "修好了", "记下了", "忘记了", "卖掉了", "借走了", "画出了", "包好了")
ZH_WHAT = ("七盏灯", "铜制的罗盘", "一箱洋葱", "两本账册", "潮汐表", "那座旧钟", "窗边的渔网")
ZH_WHERE = ("在正午之前", "在磨坊旁边", "在雨里", "在集市上", "在第二天清晨", "在灯塔下面")
ZH_THEN = ("却没有告诉任何人", "于是钟响了两次", "水壶还在唱歌", "大家都笑了", "事情就这样定了")


def sentence(dice: random.Random) -> str:
    """One invented English sentence."""
    text = f"{dice.choice(WHO)} {dice.choice(DID)} {dice.choice(WHAT)} {dice.choice(WHERE)}"
    return text[0].upper() + text[1:] + (f", {dice.choice(THEN)}." if dice.random() < 0.6 else ".")


def chinese_sentence(dice: random.Random) -> str:
    """One invented Chinese sentence."""
    text = dice.choice(ZH_WHO) + dice.choice(ZH_WHERE) + dice.choice(ZH_DID) + dice.choice(ZH_WHAT)
    return text + (f"，{dice.choice(ZH_THEN)}。" if dice.random() < 0.6 else "。")


def write_lines(folder: Path, dice: random.Random) -> None:
    """The test split of `Teklia/IAM-line` in small: parquet with an image struct and the text."""
    texts = [sentence(dice) for _ in range(LINES)]
    rows = {
        "image": [{"bytes": _jpeg(_uneven(text, dice)), "path": None} for text in texts],
        "text": [re.sub(r"([.,])", r" \1", text) for text in texts],
    }
    (folder / "data").mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(rows), folder / "data/test.parquet")


def _uneven(text: str, dice: random.Random) -> Image.Image:
    """A line of 128 px with letters of uneven size, slant and height on grey paper: print that plays handwriting."""
    line = Image.new("L", (40 * len(text) + 60, 128), 235)
    x, drift = 20.0, 0.0
    for letter in text:
        font = ImageFont.load_default(size=dice.uniform(52, 62))
        drift = max(-9.0, min(9.0, drift + dice.uniform(-3, 3)))
        width = font.getlength(letter)
        tile = Image.new("L", (round(width) + 40, 128), 0)
        ImageDraw.Draw(tile).text((20, 24 + drift), letter, fill=255, font=font)
        tile = tile.rotate(dice.uniform(-5, 5), Image.Resampling.BICUBIC)
        line.paste(dice.randint(30, 90), (round(x) - 20, 0), tile)
        x += width + dice.uniform(-1.5, 2.5)
    slant = line.transform(line.size, Image.Transform.AFFINE, (1, 0.25, -16, 0, 1, 0), Image.Resampling.BICUBIC, 0, 235)
    return slant.crop((0, 0, round(x) + 30, 128)).filter(ImageFilter.GaussianBlur(0.8))


def _jpeg(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.convert("RGB").save(file, "JPEG", quality=85)
    return file.getvalue()


def write_pages(folder: Path, dice: random.Random) -> None:
    """Fox's zip in small: page OCR in English, and in Chinese where there is a font for it."""
    font = _chinese_font()
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / "focus_benchmark_test.zip", "w") as archive:
        _write_language(
            archive, "en", [[_paragraph(dice) for _ in range(10)] for _ in range(PAGES)], "Libertinus Serif"
        )
        if font:
            texts = [["".join(chinese_sentence(dice) for _ in range(6)) for _ in range(10)] for _ in range(PAGES)]
            _write_language(archive, "cn", texts, font)
        else:
            print("no Noto CJK font: English only (-o language=en); apt-get install fonts-noto-cjk", file=sys.stderr)


def _paragraph(dice: random.Random) -> str:
    return " ".join(sentence(dice) for _ in range(5))


def _chinese_font() -> str:
    return next((name for name in typst.Fonts().families() if name.startswith("Noto Serif CJK SC")), "")


def _write_language(archive: zipfile.ZipFile, code: str, pages: list[list[str]], font: str) -> None:
    items = []
    for number, paragraphs in enumerate(pages, 1):
        source = f'#set page("a4", margin: 22mm)\n#set text(font: "{font}", size: 11pt, hyphenate: false)\n'
        source += "#set par(justify: true)\n" + "\n\n".join(paragraphs)
        png = typst.compile(source.encode(), format="png", ppi=150)
        assert isinstance(png, bytes), "more than one page"
        text = (" " if code == "en" else "").join(paragraphs)
        turns = [{"from": "human", "value": "<image>\nOCR this image: "}, {"from": "gpt", "value": text}]
        # A guess at a tokenizer: four letters of English, or 1.5 Chinese characters, make a token.
        tokens = len(text) // 4 if code == "en" else len(text) * 2 // 3
        items.append({"image": f"{code}_{number}.png", "len": tokens, "conversations": turns})
        archive.writestr(f"focus_benchmark_test/{code}_pdf_png/{code}_{number}.png", png)
    archive.writestr(f"focus_benchmark_test/{code}_page_ocr.json", json.dumps(items, ensure_ascii=False))


def main() -> None:
    """Write both below the folder named on the command line."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: python perf/own_pages.py FOLDER")
    root, dice = Path(sys.argv[1]), random.Random(20261121)
    write_lines(root / "iam_lines", dice)
    write_pages(root / "fox", dice)
    print(f"{root}/iam_lines: {LINES} lines; {root}/fox: {PAGES} pages for each language")


if __name__ == "__main__":
    main()

"""Write src/loupe/metrics/date_words.py: names of months and weekdays in many languages, from the Unicode CLDR.

Run: `python -m script.make_date_words`. The data is Babel's, a package for development only: its 33 MB would take the
core beyond its budget, and a score must not depend on the version of the locale data that happens to be installed.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import babel
from babel import Locale
from babel.dates import format_date

from loupe.metrics.dates import fold_date, words_of

OUTPUT = Path(__file__).resolve().parents[1] / "src/loupe/metrics/date_words.py"
#: Of a name that means two months (listopad), the language that comes first decides what people are shown.
LANGUAGES = (  # Croatian is behind Polish and Czech
    *("en", "en_GB", "de", "de_AT", "fr", "es", "es_PE", "it", "pt", "nl", "da", "sv", "nb", "nn", "fi", "is", "et"),
    *("lv", "lt", "pl", "cs", "sk", "hu", "ro", "bg", "sl", "sr", "sr_Latn", "bs", "mk", "hr", "sq", "el", "tr", "az"),
    *("uz", "kk", "ky", "ru", "uk", "be", "ka", "hy", "he", "ar", "ar_LB", "ar_DZ", "ar_MA", "fa", "ur", "hi", "bn"),
    *("ta", "te", "mr", "gu", "kn", "ml", "pa", "si", "ne", "th", "lo", "km", "my", "vi", "id", "ms", "fil", "sw"),
    *("am", "af", "ca", "eu", "gl", "ga", "cy", "zh", "ja", "ko"),
)
#: Whose months are often cut to three letters.
CUT = ("en", "de", "fr", "es", "it", "pt", "nl")
#: Spellings that documents have and the CLDR lacks.
MORE = {3: "maerz mrz"}
#: Years later than any month or day, so that no number is taken for another.
YEAR = 2033

#: The notice that must be in all copies of the data. Babel has it beside the data.
NOTICE = Path(babel.__file__).parent / "locale-data/LICENSE.unicode"

HEAD = '''"""Words of dates in {count} languages, folded: written by script/make_date_words.py, not by hand.

Derived data: names from the Unicode CLDR, by Babel {version}, folded and merged. The notice below applies to them.
"""

{notice}

from __future__ import annotations

'''


def formatted(language: str, month: int, weekday: int) -> Iterator[set[str]]:
    """The words of one date in the long, full and medium form of a language; the weekday is the one asked for."""
    day = date(YEAR, month, 13)
    day += timedelta(days=(weekday - day.weekday()) % 7)
    for form in ("full", "long", "medium"):
        yield set(words_of(fold_date(format_date(day, form, locale=language))))


def main() -> int:
    """Write the module."""
    months: dict[str, list[int]] = {}
    others: set[str] = set()

    def add(word: str, month: int) -> None:
        if word.isdigit():
            return
        found = months.setdefault(word, [])
        if month not in found:
            found.append(month)

    for language in LANGUAGES:
        locale = Locale.parse(language)
        of_two: set[str] = set()
        for context in ("format", "stand-alone"):
            for width in ("wide", "abbreviated"):
                for month, name in locale.months[context][width].items():
                    words = words_of(fold_date(name))
                    if len(words) <= 2 and not any(map(str.isdigit, name)):
                        add("_".join(words), month)
                        of_two.update(words if len(words) == 2 else ())
            for width in ("wide", "abbreviated", "short"):
                for name in locale.days[context].get(width, {}).values():
                    others.update(words_of(fold_date(name)))
        for weekday in range(7):
            for forms in zip(*(formatted(language, month, weekday) for month in range(1, 13)), strict=True):
                common = set.intersection(*forms)
                others |= common
                for month, words in enumerate(forms, 1):
                    for word in words - common - of_two:
                        add(word, month)
    others = {word for word in others if not word.isdigit()}
    for month, names in MORE.items():
        for name in names.split():
            add(name, month)
    for language in CUT:
        for month, name in Locale.parse(language).months["format"]["wide"].items():
            cut = fold_date(name)[:3]
            if len({tuple(found) for word, found in months.items() if word.startswith(cut) and word.isascii()}) == 1:
                add(cut, month)
    notice = "\n".join(f"# {line}".rstrip() for line in NOTICE.read_text("utf-8").strip().splitlines())
    count = len({language.partition("_")[0] for language in LANGUAGES})
    text = HEAD.format(count=count, version=babel.__version__, notice=notice)
    text += "#: Months, January first; a word that means two is in both. A name of two words has an underscore.\n"
    text += "MONTHS = (\n"
    for month in range(1, 13):
        text += literal(sorted(word for word, found in months.items() if month in found), "    ") + ",\n"
    text += ")\n#: Words that mean two months, and the one that is meant more often.\nAMBIGUOUS = {\n"
    text += "".join(f'    "{word}": {found[0]},\n' for word, found in sorted(months.items()) if len(found) > 1)
    text += "}\n#: Weekdays, and what else stands in dates: words for day and year, articles.\n"
    text += f"OTHERS = {literal(sorted(others), '').lstrip()}\n"
    OUTPUT.write_text(text, encoding="utf-8")
    subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", OUTPUT], check=True)
    return 0


def literal(words: list[str], indent: str) -> str:
    """Words between blanks as a text over several lines."""
    lines = textwrap.wrap(" ".join(words), 55 if any(word >= "\u2e80" for word in words) else 100)
    return indent + "(\n" + "".join(f'{indent}    "{line} "\n' for line in lines) + indent + ")"


if __name__ == "__main__":
    sys.exit(main())

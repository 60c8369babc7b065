"""Names of companies and people, compared without legal forms, titles, accents and slips of OCR.

Source: the comparison rules of Loupe's model selection (docs/select.md). Pure and symmetric.
"""

from __future__ import annotations

import unicodedata
from typing import Literal, TypeAlias

from loupe.metrics.edit import normalized_edit_similarity

NameKind: TypeAlias = Literal["company", "person"]
NameRule: TypeAlias = Literal["exact", "nospace", "tokens", "fuzzy"]

#: Similarity that an OCR slip leaves, and the length from which on one says something.
SLIP_SIMILARITY, SLIP_LENGTH = 0.90, 8
#: No name is longer: beyond it, only equal texts match, so that no answer costs time.
LONGEST = 2000

_LEGAL_FORMS = frozenset(
    tuple(form.split())
    for form in (
        *("gmbh", "mbh", "ag", "kg", "ohg", "gbr", "ug", "ek", "e k", "ev", "e v", "kgaa", "co", "und co", "and co"),
        *("inc", "incorporated", "llc", "llp", "ltd", "limited", "plc", "corp", "corporation", "company", "sa"),
        *("sarl", "sas", "srl", "spa", "bv", "nv", "ab", "as", "oy", "kk", "pty", "pte", "se", "haftungsbeschraenkt"),
    )
)
_TITLES = frozenset(
    (
        *("dr", "drs", "med", "dent", "vet", "rer", "nat", "phil", "prof", "professor", "priv", "doz", "pd", "dipl"),
        *("univ", "mudr", "doctor", "doktor", "herr", "frau", "mr", "mrs", "ms", "mag", "habil"),
    )
)
_POST_NOMINALS = frozenset(("md", "do", "phd", "mbbs", "facs", "dds"))
#: How initials with an umlaut look once it is folded away: "Ö." is one letter of a name, and so an initial.
_FOLDED_INITIALS = frozenset(("ae", "oe", "ue"))
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "_": " "})


def normalize_name(value: str, kind: NameKind) -> str:
    """A name as it is compared: folded to plain letters and digits, without legal form (company) or titles (person).

    A name that is nothing but these keeps them. "Last, First" of a person becomes "first last".

    >>> normalize_name("Autohaus_Hoffmann_e.K.", "company"), normalize_name("Weber, Dr. med. Anna", "person")
    ('autohaus hoffmann', 'anna weber')
    """
    if kind == "company":
        return " ".join(_without_legal_form(_tokens(value)))
    return " ".join(_without_titles(_tokens(_first_name_first(value))))


def names_match(prediction: str, reference: str, kind: NameKind) -> NameRule | None:
    """The rule by which two names are the same, or None.

    `exact`: equal when normalised. `nospace`: equal without spaces. `tokens` (people only): the same words in any
    order, or the same last name and given names that agree with initials. `fuzzy`: at most one character in ten
    differs, in names of 8 characters or more. A name without a letter or digit matches only its own text.

    >>> names_match("Dr. med. Anna Weber", "Weber, A.", "person")
    'tokens'
    >>> names_match("Autohaus Hofmann", "Autohaus Hoffmann AG", "company")
    'fuzzy'
    """
    if max(len(prediction), len(reference)) > LONGEST:
        return "exact" if prediction.strip() == reference.strip() else None
    a, b = normalize_name(prediction, kind), normalize_name(reference, kind)
    if not a or not b:
        return "exact" if prediction.strip() == reference.strip() else None
    if a == b:
        return "exact"
    if a.replace(" ", "") == b.replace(" ", ""):
        return "nospace"
    if kind == "person" and _same_person(a.split(), b.split()):
        return "tokens"
    if max(len(a), len(b)) >= SLIP_LENGTH and normalized_edit_similarity(a, b) >= SLIP_SIMILARITY:
        return "fuzzy"
    return None


def _tokens(value: str) -> list[str]:
    """The words of a name in plain letters: compatibility forms, case, umlauts and accents folded away."""
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", value).casefold()).translate(_UMLAUTS)
    bare = "".join(
        char for char in unicodedata.normalize("NFD", text) if not unicodedata.category(char).startswith("M")
    )
    plain = unicodedata.normalize("NFC", bare)
    return "".join(char if char.isalnum() else " " for char in plain).split()


def _without_legal_form(tokens: list[str]) -> list[str]:
    kept = list(tokens)
    while kept:
        # "und co" before "co".
        length = next((size for size in (2, 1) if tuple(kept[-size:]) in _LEGAL_FORMS), 0)
        if not length:
            return kept
        del kept[-length:]
    return tokens


def _without_titles(tokens: list[str]) -> list[str]:
    start, end = 0, len(tokens)
    while start < end and tokens[start] in _TITLES:
        start += 1
    while start < end and tokens[end - 1] in _POST_NOMINALS:
        end -= 1
    return tokens[start:end] or tokens


def _first_name_first(value: str) -> str:
    """ "Last, First" the other way round; what stands behind a comma after a whole name ("Anna Weber, MD") stays."""
    parts = value.split(",")
    while len(parts) > 1 and all(token in _POST_NOMINALS for token in _tokens(parts[-1])):
        parts.pop()
    return " ".join([*parts[1:], parts[0]])


def _same_person(a: list[str], b: list[str]) -> bool:
    if set(a) == set(b):
        return True
    return a[-1] == b[-1] and (_are_initials_of(a[:-1], b[:-1]) or _are_initials_of(b[:-1], a[:-1]))


def _are_initials_of(short: list[str], given: list[str]) -> bool:
    """Whether given names are initials, each of the name in its place; "Weber" alone is nobody's initial."""
    if not 0 < len(short) <= len(given) or any(
        len(initial) > 1 and initial not in _FOLDED_INITIALS for initial in short
    ):
        return False
    return all(name.startswith(initial) for initial, name in zip(short, given, strict=False))

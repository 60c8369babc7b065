"""Names under which a field is found on documents and in answers, for the fall-back of the variant `repair_regex`.

Protocol: docs/benchmarks/nanonets_kie.md. No public code exists for these rules, so they claim no parity.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

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

"""What the made-up documents say, in five languages: labels, ways to write a date and an amount, names, wares."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

_MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
}


@dataclass(frozen=True, slots=True)
class Language:
    """The words of an invoice, and how the country writes days and money."""

    code: str
    invoice: str
    number: str
    day: str
    due: str
    total: str
    net: str
    tax: str
    ware: str
    price: str
    customer: str
    thanks: str
    date_styles: tuple[str, ...]
    amount_style: str
    sellers: tuple[str, ...]
    wares: tuple[str, ...]

    def date(self, day: date, style: str) -> str:
        """The day in one of the styles."""
        month = _MONTHS[self.code].split()[day.month - 1]
        return style.format(d=day.day, D=f"{day.day:02d}", m=f"{day.month:02d}", M=month, y=day.year)

    def amount(self, cents: int) -> str:
        """An amount of money with its currency."""
        whole, rest = f"{cents // 100:,}", f"{cents % 100:02d}"
        marks = {"en": (",", "."), "de": (".", ","), "fr": (" ", ","), "es": (".", ","), "it": (".", ",")}[self.code]
        return self.amount_style.format(whole.replace(",", marks[0]) + marks[1] + rest)


LANGUAGES = (
    Language(
        "en", "Invoice", "Invoice no.", "Date", "Due", "Total due", "Subtotal", "Tax", "Item", "Price", "Bill to",
        "Thank you for your business.", ("{M} {d}, {y}", "{D}/{m}/{y}", "{y}-{m}-{D}", "{d} {M} {y}"), "£{}",
        ("Harbour Paper Ltd", "Northgate Tools Ltd", "Brindle & Sons Limited", "Fenwick Lamps plc"),
        ("Printer paper, 5 boxes", "Desk lamp", "Repair of a lock", "Ink, black", "Delivery"),
    ),
    Language(
        "de", "Rechnung", "Rechnungsnummer", "Rechnungsdatum", "Fällig am", "Gesamtbetrag", "Zwischensumme", "MwSt.",
        "Leistung", "Betrag", "Kunde", "Vielen Dank für Ihren Auftrag.", ("{D}.{m}.{y}", "{d}. {M} {y}"), "{} €",
        ("Autohaus Hoffmann e.K.", "Müller Werkzeuge GmbH", "Bäckerei Größing KG", "Seidel Druck AG"),
        ("Ölwechsel", "Winterreifen, vier Stück", "Visitenkarten", "Brötchen und Kuchen", "Anfahrt"),
    ),
    Language(
        "fr", "Facture", "Facture n°", "Date", "Échéance", "Total TTC", "Total HT", "TVA", "Désignation", "Prix",
        "Client", "Merci de votre confiance.", ("{D}/{m}/{y}", "{d} {M} {y}"), "{} €",
        ("Librairie du Pont SARL", "Ateliers Lefèvre SAS", "Café de la Gare SA"),
        ("Livres scolaires", "Chaise en chêne", "Petit déjeuner, 12 personnes", "Livraison", "Papier à lettres"),
    ),
    Language(
        "es", "Factura", "Factura n.º", "Fecha", "Vencimiento", "Total a pagar", "Base imponible", "IVA", "Concepto",
        "Importe", "Cliente", "Gracias por su confianza.", ("{D}/{m}/{y}", "{d} de {M} de {y}"), "{} €",
        ("Talleres Muñoz SA", "Imprenta del Río SL", "Flores Ibáñez SL"),
        ("Revisión del motor", "Carteles, cien unidades", "Ramo de flores", "Transporte", "Cambio de aceite"),
    ),
    Language(
        "it", "Fattura", "Fattura n.", "Data", "Scadenza", "Totale fattura", "Imponibile", "IVA", "Descrizione",
        "Importo", "Cliente", "Grazie per la fiducia.", ("{D}/{m}/{y}", "{d} {M} {y}"), "EUR {}",
        ("Officina Bianchi Srl", "Ceramiche Perù SpA", "Libreria Città Nuova Srl"),
        ("Piastrelle, 20 metri", "Revisione della caldaia", "Quaderni", "Trasporto", "Vaso dipinto"),
    ),
)  # fmt: skip

CUSTOMERS = ("Office of the Tide Table", "A. Weber", "J. Moreau", "Studio Conti", "P. Ibarra", "M. Lindqvist")

#: Papers that are no invoices: title, and lines; {seller}, {date}, {amount}, {person} are filled in.
OTHERS: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "en": (
        (
            "Minutes of the meeting",
            (
                "{date}",
                "Present: {person}, M. Lindqvist, P. Ibarra.",
                "The invoice of {seller} was",
                "discussed and will be paid in June.",
                "The next meeting is in the small hall.",
                "Nobody had further questions.",
            ),
        ),
        (
            "Delivery note",
            (
                "{seller}",
                "Delivered on {date}",
                "4 boxes of paper",
                "1 desk lamp",
                "2 bottles of ink, black",
                "Received in good order: {person}",
                "This is not a request for payment.",
            ),
        ),
        (
            "Menu of the day",
            (
                "Soup of the day  £4.50",
                "Fish pie with peas  £11.00",
                "Apple crumble  £5.20",
                "Tea or coffee  £2.10",
                "Ask us about allergies.",
                "Kitchen open until nine.",
            ),
        ),
    ),
    "de": (
        (
            "Einladung",
            (
                "Liebe {person},",
                "am {date} feiern wir das Sommerfest der Nachbarschaft.",
                "Bringt bitte Teller und gute Laune mit.",
                "Für Getränke ist gesorgt, der Eintritt ist frei.",
                "Herzliche Grüße",
                "Euer Festausschuss",
            ),
        ),
        (
            "Angebot",
            (
                "{seller}",
                "Datum: {date}",
                "Gerne bieten wir Ihnen an:",
                "Reparatur der Haustür, etwa {amount}",
                "Dieses Angebot gilt vier Wochen.",
                "Eine Rechnung folgt erst nach der Arbeit.",
            ),
        ),
    ),
    "fr": (
        (
            "Horaires d'été",
            (
                "À partir du {date}",
                "Lundi à vendredi : 9 h - 18 h",
                "Samedi : 10 h - 13 h",
                "Fermé le dimanche.",
                "{seller}",
                "Merci de votre compréhension.",
            ),
        ),
        (
            "Recette",
            (
                "Tarte aux pommes",
                "200 g de farine, 100 g de beurre",
                "Quatre pommes, un peu de sucre",
                "Cuire quarante minutes.",
                "Servir tiède avec de la crème.",
            ),
        ),
    ),
    "es": (
        (
            "Aviso",
            (
                "El {date} se cortará el agua",
                "entre las nueve y las doce.",
                "Disculpen las molestias.",
                "{seller}",
                "Para más información: oficina de obras.",
            ),
        ),
    ),
    "it": (
        (
            "Lettera",
            (
                "Gentile {person},",
                "la ringraziamo della visita del {date}.",
                "Le alleghiamo il programma dei concerti.",
                "Il biglietto costa {amount}.",
                "Cordiali saluti",
                "{seller}",
            ),
        ),
    ),
}

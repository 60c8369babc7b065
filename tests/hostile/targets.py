"""Every kind of foreign files that is attacked, by name."""

from __future__ import annotations

from tests.hostile import data_sets, default_places, own_folders, packs, pages, planted, run_folders

TARGETS = {
    target.name: target
    for target in (
        run_folders.TARGET,
        packs.TARGET,
        own_folders.OWN,
        own_folders.SELECTIONS,
        own_folders.SETTINGS,
        own_folders.VECTORS,
        data_sets.LAYOUTS,
        data_sets.ANSWERS,
        data_sets.ARCHIVES,
        default_places.PLACES_AND_PACKS,
        pages.IMAGES,
        pages.PDFS,
    )
}
#: What is found on purpose.
PLANTED = {planted.TARGET.name: planted.TARGET}

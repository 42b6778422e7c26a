"""Labels and their numbers of rows, for Python and the playground, which propose the same spellings for merging."""

from collections.abc import Mapping

Proposals = list[tuple[dict[str, int], str]]

SPELLINGS: list[tuple[Mapping[str, int], Proposals]] = [
    ({"Sport": 40, "Sports": 10}, [({"Sports": 10}, "Sport")]),
    ({"Business": 30, "Buisness": 1, "Sport": 20}, [({"Buisness": 1}, "Business")]),
    ({"tóxico": 50, "toxico": 9, "Tóxico": 3}, [({"toxico": 9}, "tóxico"), ({"Tóxico": 3}, "tóxico")]),
    ({"Billing": 320, "billing": 114, "BILLING": 30}, [({"billing": 114, "BILLING": 30}, "Billing")]),
    ({"e-mail": 10, "E Mail": 3}, [({"E Mail": 3}, "e-mail")]),
    ({"Food & Drink": 10, "Food and Drink": 3}, [({"Food and Drink": 3}, "Food & Drink")]),
    ({"Frage": 10, "Fragen": 5}, [({"Fragen": 5}, "Frage")]),
    ({"category": 9, "categories": 3}, [({"categories": 3}, "category")]),
    ({"1. Sport": 20, "Sport": 3}, [({"Sport": 3}, "1. Sport")]),
    ({"Technical": 100, "Tech": 3}, [({"Tech": 3}, "Technical")]),
    (
        {"reclamação": 183, "elogio": 157, "reclamacao": 26, "elogios": 13, "Elogio": 12, "reclamaçao": 9},
        [
            ({"reclamacao": 26, "reclamaçao": 9}, "reclamação"),
            ({"Elogio": 12}, "elogio"),
            ({"elogios": 13}, "elogio"),
        ],
    ),
    ({"__proto__": 5, "__PROTO__": 2, "constructor": 9}, [({"__PROTO__": 2}, "__proto__")]),
]
"""Labels, and the spellings of each label that are proposed."""
OWN_CLASSES: list[Mapping[str, int]] = [
    {"cat": 30, "car": 25},
    {"toxic": 90, "non-toxic": 3},
    {"legal": 90, "illegal": 3},
    {"moral": 90, "amoral": 2},
    {"spam": 90, "ham": 5},
    {"Q1": 90, "Q2": 1},
    {"1": 30, "-1": 30, "+1": 2},
    {"new": 50, "news": 40},
    {"in": 90, "on": 1},
    {"C": 10, "C++": 3, "C#": 3},
    {"👍": 10, "👎": 1},
    {"class a": 90, "class b": 1},
    {"human": 50, "humane": 45},
    {"positive": 90, "negative": 1},
    {"male": 90, "female": 1},
]
"""Labels that are classes of their own."""

"""Example texts, written for this project: news, film reviews, queries, match reports and beginnings of sentences.

The first of a domain, on which the app opens, is long enough and clear; some of the others are deliberately ambiguous.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Example:
    """An example text; `title` is the label of its button.

    `changed` is a version with the same number of tokens and a different prediction; `label` is the class of an
    unambiguous text. Both are "" if there is none.
    """

    title: str
    text: str
    changed: str = ""
    label: str = ""


EXAMPLES = (
    Example(
        "Factory strike",
        "Shares of the car maker fell sharply on Thursday after it said that its largest factory was on strike.",
        changed="Shares of the football club fell sharply on Thursday after it said that its best player was not fit.",
        label="Business",
    ),
    Example(
        "Late chips",
        "Shares of the chip maker fell after its new phone processor was delayed",
        changed="Shares of the chip maker fell after its new phone contract was delayed",
    ),
    Example("Village or moon", "The rocket hit the village", changed="The rocket hit the moon"),
    Example("Phone bank", "Voters in the tiny republic chose a phone company as their bank"),
    Example("Lost match", "Peacekeepers lost the match against the village team by six goals"),
    Example("Rocket stock", "The satellite firm launched its first rocket and its stock doubled"),
    Example("Final whistle", "Mobile phone makers raced to court as soon as the final whistle blew"),
    Example("Costly wedding", "The minister resigned over the price of her wedding"),
    Example("Hired hackers", "The bank hired hackers to break into its own computers"),
    Example("Apple harvest", "Apple prices fall after a record harvest."),
    Example("Doping test", "A blood test for a new doping drug was ready just before the games"),
    Example(
        "Late winner",
        "Oliveira headed in a corner two minutes from time to win the cup for the home side, which had lost the last "
        "three finals by a single goal",
        label="Sports",
    ),
    Example("River treaty", "Four countries signed a treaty on the river after eleven years of talks", label="World"),
    Example(
        "Radio telescope",
        "A radio telescope picked up faint signals from clouds older than any star",
        label="Sci/Tech",
    ),
)

REVIEWS = (
    Example(
        "Loved it",
        "The leads are wonderful together, the jokes land, and the last twenty minutes had the whole row in tears. I "
        "went in with low expectations and came out smiling: a warm, funny and clever film that I will gladly watch "
        "again.",
        changed="The leads are wonderful together, the jokes land, and the last twenty minutes had the whole row in "
        "tears. I went in with low expectations and came out bored: a slow, dull and clumsy film that I will never "
        "watch again.",
        label="positive",
    ),
    Example(
        "Guilty pleasure",
        "It is cheap, silly and badly dubbed, and I have watched it four times. Terrible. Perfect.",
        changed="It is cheap, silly and badly dubbed, and I have watched it four times. Wonderful. Perfect.",
    ),
    Example(
        "Wasted evening",
        "Two hours of my life that nobody will give me back. The plot makes no sense, the acting is awful, the "
        "dialogue sounds like a user manual, and even the dog looks embarrassed. I wanted to like it, because I liked "
        "the book, but it is a dull and pointless waste of a good story.",
        label="negative",
    ),
    Example(
        "Not bad at all",
        "Not bad at all, in spite of what the critics wrote. Nothing here is terrible, and I was never bored.",
    ),
    Example(
        "So good on paper",
        "A brilliant director, a great cast, a superb score. What a pity that none of it helps: the film is a mess.",
    ),
    Example("Two words", "Just awful.", label="negative"),
)
QUERIES = (
    Example(
        "Move money",
        "could you move ten dollars from my checking to my savings account",
        changed="could you order ten checks from my checking and my savings account",
        label="transfer",
    ),
    Example(
        "Two wishes",
        "is it going to rain on friday and should i book a table outside",
        changed="is it going to be busy on friday and should i book a table",
    ),
    Example("Alarm", "wake me up at half past six tomorrow", label="alarm"),
    Example("Lost luggage", "the airline says my suitcase is still in lisbon, what now"),
    Example("Recipe", "what could i cook with leeks and half a pumpkin"),
    Example("None of these", "how many moons of jupiter were known before the first space probes"),
)

REPORTS = (
    Example(
        "Relative clause",
        "Rovers lost to Wanderers, who beat United last week.",
        changed="Rovers easily beat Wanderers, who beat United last week.",
        label="Wanderers",
    ),
    Example("Passive", "City were beaten by Wanderers in the final.", label="Wanderers"),
    Example("Lost to", "Albion lost to Rangers at home.", label="Rangers"),
    Example("Cleft", "It was Athletic that County beat on Sunday.", label="County"),
    Example("Not … but …", "Not City but Rangers lost the match.", label="City"),
    Example("Two turns", "It was Rovers, who beat County in March, who were defeated by Albion.", label="Albion"),
)

SUBJECTS = (
    Example("Keys and cabinet", "The keys to the cabinet", changed="The key to the cabinet", label="plural"),
    Example("Key and cabinets", "The key to the cabinets", changed="The keys to the cabinets", label="singular"),
    Example("Relative clause", "The author who met the editors", changed="The authors who met the editors"),
    Example("Two joined", "The cook and the waiter in the restaurant"),
    Example("Far apart", "The picture of the children on the walls of the two houses"),
    Example("A group", "The committee of teachers and parents"),
)

GENERAL = (
    Example("Start here", "Type or paste a text of your own here"),
    Example("A question", "Could somebody tell me how this works and what it costs?"),
    Example("A complaint", "This is not what I asked for, and nobody has answered my letters"),
    Example("Praise", "Thank you, that was quick and very friendly"),
    Example("A plan", "We meet on Thursday at ten to talk about the new building"),
)
"""For users' own classifiers, since their domain is unknown."""


FOUR_TEAMS = (
    Example("Relative clause", "Rovers lost to City, who beat United last week.", label="City"),
    Example("Passive", "City were beaten by County at home.", label="County"),
    Example("Active", "United narrowly beat Rovers.", changed="Rovers narrowly beat United.", label="United"),
)
FIVE_WORDS = (
    Example("At both ends", "river stone lamp key river", changed="river stone lamp key door", label="repeated"),
    Example("Side by side", "table glass glass cloud lamp", label="repeated"),
    Example("All different", "door lamp cloud key stone", label="all different"),
)

_BY_DATASET = {
    "imdb": REVIEWS, "clinc150": QUERIES, "who_won": REPORTS, "who_won_small": FOUR_TEAMS, "repeated_word": FIVE_WORDS,
    "agreement": SUBJECTS, "table": GENERAL,
}  # fmt: skip


def examples_for(dataset: str) -> tuple[Example, ...]:
    """The example texts for the domain of a data set."""
    return _BY_DATASET.get(dataset, EXAMPLES)

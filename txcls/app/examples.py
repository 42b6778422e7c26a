"""Texts to try, written for this project: invented news, film reviews and queries, some deliberately ambiguous."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Example:
    """A text that a click puts into the box; `title` labels the button."""

    title: str
    text: str


EXAMPLES = (
    Example(
        "Late winner",
        "Substitute Marta Oliveira headed in a corner two minutes from time as the hosts came from behind to win "
        "the cup semi-final and end a run of six matches without victory.",
    ),
    Example(
        "River treaty",
        "Ministers of four countries signed an agreement on sharing the water of the river, ending eleven years "
        "of talks that border clashes had twice brought to a halt.",
    ),
    Example(
        "Profit warning",
        "Shares in the furniture maker fell nine percent after it cut its profit forecast, blaming higher timber "
        "prices and weak demand in its largest market.",
    ),
    Example(
        "New telescope",
        "Astronomers say the new radio telescope has picked up faint signals from hydrogen clouds that formed "
        "when the universe was less than a tenth of its present age.",
    ),
    Example(
        "Election recount",
        "Electoral officials began a recount in the capital on Tuesday after the opposition leader lost the "
        "presidential vote by fewer than four thousand ballots.",
    ),
    Example(
        "Marathon heat",
        "The marathon champion pulled out with stomach cramps at the thirtieth kilometre, leaving two debutants "
        "to sprint for the gold medal in the heat.",
    ),
    Example(
        "Bank merger",
        "Two regional banks agreed to merge in a deal valued at 2.3 billion dollars; regulators are expected to "
        "decide by the end of the quarter.",
    ),
    Example(
        "Browser hole",
        "A security researcher published details of a hole in a popular web browser that lets attackers read "
        "saved passwords, and the developers promised a patch within days.",
    ),
    Example(
        "Club on the stock market",
        "The football club plans to sell a quarter of its shares on the stock exchange to pay for a new striker "
        "and a bigger stadium.",
    ),
    Example(
        "Chips and borders",
        "The government banned exports of advanced computer chips to its neighbour, and the three largest chip "
        "makers lost a tenth of their market value within hours.",
    ),
    Example(
        "Doping laboratory",
        "Scientists have developed a blood test that detects a new doping substance, and officials want to use it"
        " before the winter games open in January.",
    ),
    Example("Apple harvest", "Apple prices fall after a record harvest."),
)

REVIEWS = (
    Example(
        "Loved it",
        "I went in with low expectations and came out beaming. The two leads are wonderful together, the jokes land, "
        "and the last twenty minutes had the whole row in tears.",
    ),
    Example(
        "Wasted evening",
        "Two hours of my life that nobody will give me back. The plot makes no sense, the dialogue sounds like a user "
        "manual, and even the dog looks embarrassed.",
    ),
    Example(
        "Not bad at all",
        "Not bad at all, in spite of what the critics wrote. Nothing here is terrible, and I was never bored.",
    ),
    Example(
        "So good on paper",
        "A brilliant director, a great cast, a superb score. What a pity that none of it helps: the film is a mess.",
    ),
    Example(
        "Guilty pleasure",
        "It is cheap, silly and badly dubbed, and I have watched it four times. Terrible. Perfect.",
    ),
    Example("Two words", "Just awful."),
)
QUERIES = (
    Example("Move money", "please send two hundred euros from my checking to my savings account"),
    Example("Alarm", "wake me up at half past six tomorrow"),
    Example("Lost luggage", "the airline says my suitcase is still in lisbon, what now"),
    Example("Recipe", "what could i cook with leeks and half a pumpkin"),
    Example("Two wishes", "is it going to rain on friday and should i book a table outside"),
    Example("None of these", "how many moons of jupiter were known before the first space probes"),
)


def examples_for(dataset: str) -> tuple[Example, ...]:
    """Texts of the kind that a checkpoint trained on this data set classifies."""
    return {"imdb": REVIEWS, "clinc150": QUERIES}.get(dataset, EXAMPLES)

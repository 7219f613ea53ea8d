"""Writes a table into a page that has a place for it, between two lines of HTML comments."""

BEGIN = "<!-- The table of ./dev bench peers begins. -->"
END = "<!-- The table ends. -->"


def has_place(text):
    return BEGIN in text and END in text


def with_table(text, table):
    """Returns `text` with `table` in place of the text between the marks."""
    head, rest = text.split(BEGIN, 1)
    return f"{head}{BEGIN}\n\n{table}\n\n{END}{rest.split(END, 1)[1]}"

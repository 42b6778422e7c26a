"""The class: an audience answers the lecturer's questions on phones."""

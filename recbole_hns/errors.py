"""The one exception for what a user can put right."""


class Error(ValueError):
    """A mistake in the configuration or the data, told in one sentence.

    The command line prints the sentence and exits with code 2; in Python it is raised.
    """

"""Functions of a row that are sent to workers, and the statistics that judge them."""

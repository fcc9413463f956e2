"""Other losses than the squared one, by reweighted passes."""

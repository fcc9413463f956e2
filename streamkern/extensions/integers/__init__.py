"""Features rounded to integers, whose sums are exact on any processor and in any order."""

"""Watching: the page of jobs on the dashboard of a scheduler, and the plugin that hears of them."""

"""Routes and messages; decides nothing."""

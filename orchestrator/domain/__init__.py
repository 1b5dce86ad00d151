"""Pure rules: no clock, no random, no IO; time and ids are passed in."""

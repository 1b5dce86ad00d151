"""Model providers: hosted ones, a scripted one, and the router in front of them."""

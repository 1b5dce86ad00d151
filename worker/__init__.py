"""What runs inside the sandbox: client, local tools, proxies and the agent loop."""

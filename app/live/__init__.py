"""The live pane beside the chat: speed, times, memory and context as they happen."""

"""The desktop application: Qt only, no arithmetic on tensors."""

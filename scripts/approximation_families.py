"""Families of approximations: their members, colours and markers in every figure."""

from figure_style import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION

FAMILIES = {
    "low rank": (("truncation", "nystrom", "nystromformer", "linformer", "projection"), BLUE, "o"),
    "features": (("performer", "performer_orthogonal", "taylor"), VERMILION, "s"),
    "sparsity": (("window", "top_k", "decay"), GREEN, "^"),
    "rounding": (("rounding", "quantization"), ORANGE, "D"),
    "noise": (("noise",), SKY, "P"),
    "worst values": (("adversary",), PURPLE, "+"),
}

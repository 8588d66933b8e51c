"""Copy a PNG of a figure to the gallery, small: few pixels, no more colours than needed."""

import argparse
from io import BytesIO

from PIL import Image

from whole_files import intact, whole

PALETTES = (256, 64, 32, 16, 12, 8)
COVERAGE = Image.Quantize.MAXCOVERAGE  # the median cut would lose the few coloured words


def shrunk(image: Image.Image, width: int, most_bytes: int) -> bytes:
    """A PNG on white, at most `width` pixels wide, in the largest palette that stays small."""
    small = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image.convert("RGBA"))
    small = small.convert("RGB")
    if small.width > width:
        height = round(small.height * width / small.width)
        small = small.resize((width, height), Image.Resampling.BOX)
    for colors in PALETTES:
        file = BytesIO()
        palette = small.quantize(colors, method=COVERAGE, dither=Image.Dither.NONE)
        palette.save(file, format="png", optimize=True)
        if file.tell() <= most_bytes:
            break
    return file.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", required=True, help="a PNG")
    parser.add_argument("--width", type=int, default=1004, help="most pixels in a row")
    parser.add_argument("--bytes", type=int, default=85_000, help="aimed at by fewer colours")
    parser.add_argument("--output", required=True, help="a PNG")
    args = parser.parse_args()
    with Image.open(intact(args.input)) as image:
        content = shrunk(image, args.width, args.bytes)
    with whole(args.output) as part:
        part.write_bytes(content)


if __name__ == "__main__":
    main()

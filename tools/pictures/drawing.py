"""A few lines of SVG: texts, boxes, arrows and curves. Pictures have a white ground, so that they can be read on dark pages."""

from html import escape

SANS = "DejaVu Sans, Verdana, sans-serif"
MONO = "DejaVu Sans Mono, Menlo, Consolas, monospace"
INK, GREY, BLUE, ORANGE, GREEN = "#1f2328", "#6e7781", "#0969da", "#bc4c00", "#1a7f37"


class Picture:
    """Collects shapes; svg() is the file. `about` is its title, which screen readers say."""

    def __init__(self, width, height, about, ground="#ffffff"):
        self.width, self.height, self.about = width, height, about
        self.shapes = [f'<rect width="{width}" height="{height}" rx="8" fill="{ground}"/>']

    def box(self, x, y, width, height, stroke=GREY, fill="none", dashed=False):
        dash = ' stroke-dasharray="6 4"' if dashed else ""
        self.shapes.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{fill}" '
                           f'stroke="{stroke}" stroke-width="1.5"{dash}/>')

    def text(self, x, y, text, size=13, color=INK, font=SANS, anchor="start", bold=False):
        weight = ' font-weight="bold"' if bold else ""
        self.shapes.append(f'<text x="{x}" y="{y}" font-family="{font}" font-size="{size}" fill="{color}" '
                           f'text-anchor="{anchor}"{weight} xml:space="preserve">{escape(text)}</text>')

    def arrow(self, points, color=INK, dashed=False):
        path = " ".join(f"{x},{y}" for x, y in points)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.shapes.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.6"{dash} '
                           f'marker-end="url(#tip)"/>')

    def line(self, points, color, width=2):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.shapes.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{width}"/>')

    def svg(self):
        tip = ('<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
               f'orient="auto-start-reverse"><path d="M0,0 L10,5 L0,10 z" fill="{INK}"/></marker></defs>')
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
                f'width="{self.width}" height="{self.height}" role="img">\n<title>{escape(self.about)}</title>\n{tip}\n'
                + "\n".join(self.shapes) + "\n</svg>\n")

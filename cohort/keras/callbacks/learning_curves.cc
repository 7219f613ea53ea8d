// History::Plot. The picture is an SVG file with one chart below another. A Chart has the training and the validation
// curve of one quantity, and axes with round numbers (Ticks).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/str_cat.h"
#include "cohort/keras/callbacks/history.h"

namespace cohort::keras {
namespace {

// The size and margins of one chart, in pixels.
constexpr double kWidth = 640, kHeight = 320;
constexpr double kLeft = 72, kRight = 24, kTop = 36, kBottom = 44;
constexpr char kTrainColor[] = "#1f77b4";
constexpr char kValidationColor[] = "#ff7f0e";

std::string Number(double value, const char* format = "%.6g") {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}
std::string Pixels(double value) { return Number(value, "%.1f"); }

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else {
      out += c;
    }
  }
  return out;
}

// Round numbers over [low, high], some `count` of them: steps of 1, 2 or 5 times a power of ten.
std::vector<double> Ticks(double low, double high, int count) {
  const double rough = (high - low) / count;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = power;
  for (const double factor : {2.0, 5.0, 10.0}) {
    if (step < 0.7 * rough) step = factor * power;
  }
  std::vector<double> ticks;
  for (double k = std::ceil(low / step - 1e-9); k * step <= high + step * 1e-9; ++k) ticks.push_back(k * step);
  return ticks;
}

struct Scale {
  double low, high;        // of the values
  double at_low, at_high;  // in pixels
  double operator()(double value) const { return at_low + (value - low) / (high - low) * (at_high - at_low); }
};

struct Series {
  const std::vector<double>* values;  // null: there is none
  std::string label;
  const char* color;
};

class Chart {
 public:
  Chart(std::string title, const std::vector<int>& epochs, std::vector<Series> curves, double top)
      : title_(std::move(title)), epochs_(epochs), curves_(std::move(curves)), top_(top) {
    const double first = epochs.front() + 1, last = epochs.back() + 1;
    const bool single = last <= first;
    x_ = {single ? first - 1 : first, single ? last + 1 : last, kLeft, kWidth - kRight};
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const Series& curve : curves_) {
      for (const double value : *curve.values) {
        if (!std::isfinite(value)) continue;
        low = std::min(low, value);
        high = std::max(high, value);
      }
    }
    if (!(low <= high)) low = 0, high = 1;
    const double margin = high > low ? 0.05 * (high - low) : std::max(std::abs(high) * 0.05, 1e-6);
    y_ = {low - margin, high + margin, top + kHeight - kBottom, top + kTop};
  }

  std::string Svg() const {
    std::string svg =
        StrCat("<g>\n<text x=\"", Pixels((x_.at_low + x_.at_high) / 2), "\" y=\"", Pixels(top_ + 22),
               "\" text-anchor=\"middle\" font-size=\"15\" font-weight=\"bold\">", Escaped(title_), "</text>\n");
    svg += Axes();
    for (const Series& curve : curves_) svg += Line(curve);
    return svg + Legend() + "</g>\n";
  }

 private:
  static std::string Label(double x, double y, const char* anchor, const std::string& text) {
    return StrCat("<text x=\"", Pixels(x), "\" y=\"", Pixels(y), "\" text-anchor=\"", anchor, "\">", Escaped(text),
                  "</text>\n");
  }
  static std::string Stroke(double x1, double y1, double x2, double y2, const char* color) {
    return StrCat("<line x1=\"", Pixels(x1), "\" y1=\"", Pixels(y1), "\" x2=\"", Pixels(x2), "\" y2=\"", Pixels(y2),
                  "\" stroke=\"", color, "\"/>\n");
  }

  std::string Axes() const {
    std::string svg;
    for (const double tick : Ticks(y_.low, y_.high, 5)) {
      svg += Stroke(x_.at_low, y_(tick), x_.at_high, y_(tick), "#dddddd");
      svg += Label(x_.at_low - 6, y_(tick) + 4, "end", Number(std::abs(tick) < 1e-12 ? 0.0 : tick));
    }
    for (const double tick : Ticks(x_.low, x_.high, 10)) {
      if (tick != std::floor(tick)) continue;
      svg += Stroke(x_(tick), y_.at_low, x_(tick), y_.at_low + 4, "#333333");
      svg += Label(x_(tick), y_.at_low + 17, "middle", Number(tick));
    }
    svg += Stroke(x_.at_low, y_.at_low, x_.at_high, y_.at_low, "#333333");
    svg += Stroke(x_.at_low, y_.at_low, x_.at_low, y_.at_high, "#333333");
    return svg + Label((x_.at_low + x_.at_high) / 2, y_.at_low + 34, "middle", "epoch");
  }

  // The line has a gap if a value is missing. Each point has a mark.
  std::string Line(const Series& curve) const {
    std::string path, points;
    bool pen_down = false;
    for (size_t i = 0; i < epochs_.size(); ++i) {
      const double value = (*curve.values)[i];
      if (!std::isfinite(value)) {
        pen_down = false;
        continue;
      }
      const std::string x = Pixels(x_(epochs_[i] + 1)), y = Pixels(y_(value));
      path += StrCat(pen_down ? "L" : "M", x, " ", y, " ");
      points += StrCat("<circle cx=\"", x, "\" cy=\"", y, "\" r=\"2.5\" fill=\"", curve.color, "\"/>\n");
      pen_down = true;
    }
    if (path.empty()) return "";
    return StrCat("<path d=\"", path, "\" fill=\"none\" stroke=\"", curve.color, "\" stroke-width=\"2\"/>\n", points);
  }

  std::string Legend() const {
    std::string svg;
    double x = x_.at_low + 8;
    for (const Series& curve : curves_) {
      svg += StrCat("<rect x=\"", Pixels(x), "\" y=\"", Pixels(top_ + kTop - 8), "\" width=\"14\" height=\"4\" fill=\"",
                    curve.color, "\"/>\n");
      svg += Label(x + 19, top_ + kTop - 2, "start", curve.label);
      x += 100;
    }
    return svg;
  }

  const std::string title_;
  const std::vector<int>& epochs_;
  const std::vector<Series> curves_;
  const double top_;
  Scale x_{}, y_{};
};

}  // namespace

std::string History::Svg() const {
  if (epochs_.empty()) {
    throw FailedPreconditionError("[keras/history] expected at least one epoch to plot; the history is empty");
  }
  std::string charts;
  double top = 0;
  for (const auto& [name, values] : values_) {
    const std::string validation = "val_" + name;
    const bool of_validation = name.rfind("val_", 0) == 0;
    if (of_validation && Has(name.substr(4))) continue;
    std::vector<Series> curves = {{&values, of_validation ? "validation" : "training", kTrainColor}};
    if (Has(validation)) curves.push_back({&(*this)[validation], "validation", kValidationColor});
    charts += Chart(name, epochs_, std::move(curves), top).Svg();
    top += kHeight;
  }
  const std::string size = StrCat("width=\"", Number(kWidth), "\" height=\"", Number(top), "\" viewBox=\"0 0 ",
                                  Number(kWidth), " ", Number(top), "\"");
  return StrCat("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" ", size,
                " font-family=\"sans-serif\" font-size=\"12\" fill=\"#222222\">\n",
                "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n", charts, "</svg>\n");
}

}  // namespace cohort::keras

// The Zynq's level-2 cache as expectations: random replacement, so a line touched when the fills stood at f is still
// there with probability exp(-(fills since) / lines). Nothing is drawn; a prediction is a smooth function of the size.
#ifndef HILT_TIMING_PUBLIC_LEVEL2_CACHE_H
#define HILT_TIMING_PUBLIC_LEVEL2_CACHE_H

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace vta {

class Level2Cache {
 public:
  static constexpr uint32_t kRegions = 8;     // one for each memory type
  static constexpr uint64_t kLineBytes = 32;  // of the PL310

  explicit Level2Cache(double bytes) : lines_(bytes / kLineBytes) {}

  // Makes room for the bytes [first, end) of a region. Lines start as never touched.
  void cover(uint32_t region, uint64_t first, uint64_t end) {
    Region &lines = regions_[region];
    lines.first = first / kLineBytes;
    lines.touched.assign((end + kLineBytes - 1) / kLineBytes - lines.first, kNever);
  }

  // Touches the bytes [first, first + bytes), which cover() has room for; the bytes that miss.
  double touch(uint32_t region, uint64_t first, uint64_t bytes) {
    Region &lines = regions_[region];
    const uint64_t begin = first / kLineBytes - lines.first;
    const uint64_t end = (first + bytes - 1) / kLineBytes - lines.first + 1;
    if (lines_ <= 0) return static_cast<double>(bytes);
    double missed = 0, last = kNever, missing = 1;
    for (uint64_t line = begin; line < end; ++line) {
      if (lines.touched[line] != last) {
        last = lines.touched[line];
        missing = last == kNever ? 1 : 1 - std::exp((last - fills_) / lines_);
      }
      missed += missing;
      lines.touched[line] = fills_;
    }
    fills_ += missed;
    return missed / static_cast<double>(end - begin) * static_cast<double>(bytes);
  }

 private:
  static constexpr double kNever = -1;
  struct Region {
    uint64_t first = 0;
    std::vector<double> touched;  // the fills at a line's last touch
  };

  double lines_;
  double fills_ = 0;
  std::array<Region, kRegions> regions_;
};

}  // namespace vta

#endif

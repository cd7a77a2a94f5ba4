/* The part of LZ4's stable C interface that Verilator's FST writer calls: a Debian that has the library need not have
 * its headers. `liblz4.so` and `libz.so` beside this file are linker scripts that name the libraries themselves. */
#ifndef HILT_FST_LZ4_H
#define HILT_FST_LZ4_H
#ifdef __cplusplus
extern "C" {
#endif
int LZ4_compressBound(int input_size);
int LZ4_compress_default(const char *from, char *to, int from_bytes, int to_bytes);
#ifdef __cplusplus
}
#endif
#endif

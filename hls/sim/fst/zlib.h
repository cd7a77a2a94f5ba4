/* The part of zlib's stable C interface that Verilator's FST writer calls; see lz4.h. */
#ifndef HILT_FST_ZLIB_H
#define HILT_FST_ZLIB_H
#ifdef __cplusplus
extern "C" {
#endif
typedef unsigned char Bytef;
typedef unsigned long uLong;
typedef uLong uLongf;
#define Z_OK 0
uLong compressBound(uLong from_bytes);
int compress2(Bytef *to, uLongf *to_bytes, const Bytef *from, uLong from_bytes, int level);
#ifdef __cplusplus
}
#endif
#endif

package events

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// A TFRecord is the payload's length (uint64), the length's checksum (uint32), the
// payload, its checksum (uint32), little-endian.
const (
	headBytes = 12
	tailBytes = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maskedCRC is CRC-32C, rotated and offset as TFRecord wants it, so that a checksum
// over data that holds checksums stays sound.
func maskedCRC(data []byte) uint32 {
	c := crc32.Checksum(data, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

func appendRecord(stream, payload []byte) []byte {
	at := len(stream)
	stream = binary.LittleEndian.AppendUint64(stream, uint64(len(payload)))
	stream = binary.LittleEndian.AppendUint32(stream, maskedCRC(stream[at:at+8]))
	stream = append(stream, payload...)
	return binary.LittleEndian.AppendUint32(stream, maskedCRC(payload))
}

// errUnfinished says that a stream ends within a record, as a killed process or one
// that is still writing leaves it.
var errUnfinished = errors.New("the last record is unfinished")

// cutRecord takes the first record off a stream.
func cutRecord(stream []byte) (payload, rest []byte, err error) {
	if len(stream) < headBytes {
		return nil, stream, errUnfinished
	}
	n := binary.LittleEndian.Uint64(stream)
	if got, want := maskedCRC(stream[:8]), binary.LittleEndian.Uint32(stream[8:]); got != want {
		return nil, stream, fmt.Errorf("the length's checksum is %08x, want %08x", got, want)
	}
	if n > uint64(len(stream)) || uint64(len(stream)) < headBytes+n+tailBytes {
		return nil, stream, errUnfinished
	}
	payload, rest = stream[headBytes:headBytes+n], stream[headBytes+n+tailBytes:]
	if got, want := maskedCRC(payload), binary.LittleEndian.Uint32(stream[headBytes+n:]); got != want {
		return nil, stream, fmt.Errorf("the record's checksum is %08x, want %08x", got, want)
	}
	return payload, rest, nil
}

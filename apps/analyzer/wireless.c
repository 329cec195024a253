// SPDX-License-Identifier: Apache-2.0
/* Documented in wireless.h. IEEE 802.11-2020 9.2, 9.3.2.1; https://www.radiotap.org */
#include "wireless.h"
#include "packet.h"

enum { MAC_HEADER = 24, FOURTH_ADDRESS = 6, QOS_CONTROL = 2, HT_CONTROL = 4, AGGREGATE = 0x80 };
enum { TO_AND_FROM_DS = 0x0300, MORE_FRAGMENTS = 0x0400, PROTECTED = 0x4000, ORDER = 0x8000 };
enum { TYPE_DATA = 2, SUBTYPE_NO_DATA = 4, SUBTYPE_QOS = 8 };
enum { RADIOTAP_HEADER = 8, RADIOTAP_TIME = 1, RADIOTAP_FLAGS = 2, RADIOTAP_PADDED = 0x20 };
static const uint32_t RADIOTAP_MORE = 1u << 31;

/* Whether the MAC header is padded to a multiple of 4: bit 5 of the flags, which stand behind the words that
 * say what is present and, if it is, the time (8 bytes, aligned). */
static bool is_padded(const struct cursor *c, uint32_t bytes)
{
	uint32_t present = get_le32(c->at + 4), at = RADIOTAP_HEADER, more = present;

	while (more & RADIOTAP_MORE) {
		if (at + 4 > bytes)
			return false;
		more = get_le32(c->at + at);
		at += 4;
	}
	if (!(present & RADIOTAP_FLAGS))
		return false;
	if (present & RADIOTAP_TIME)
		at = ((at + 7) & ~7u) + 8;
	return at < bytes && c->at[at] & RADIOTAP_PADDED;
}

/* Takes the capturing program's header. */
static bool take_header(struct cursor *c, enum wireless_header header, bool *padded)
{
	uint32_t bytes = 0;

	*padded = false;
	if (header == WIRELESS_BARE)
		return true;
	if (c->captured < RADIOTAP_HEADER)
		return false;
	if (header == WIRELESS_RADIOTAP)
		bytes = get_le16(c->at + 2);
	else if (header == WIRELESS_AVS)
		bytes = get_be32(c->at + 4);
	else /* in the byte order of the capturing machine; never long */
		bytes = get_le32(c->at + 4) <= UINT16_MAX ? get_le32(c->at + 4) : get_be32(c->at + 4);
	if (bytes < RADIOTAP_HEADER || bytes > c->captured)
		return false;
	*padded = header == WIRELESS_RADIOTAP && is_padded(c, bytes);
	return skip(c, bytes);
}

bool wireless_data(struct cursor *c, enum wireless_header header)
{
	uint32_t bytes = MAC_HEADER;
	uint16_t control;
	uint8_t subtype;
	bool padded;

	if (!take_header(c, header, &padded) || c->captured < MAC_HEADER)
		return false;
	control = get_le16(c->at);
	subtype = control >> 4 & 15;
	if ((control >> 2 & 3) != TYPE_DATA || subtype & SUBTYPE_NO_DATA ||
	    control & (PROTECTED | MORE_FRAGMENTS) ||
	    get_le16(c->at + 22) & 15) /* a fragment that is not the first */
		return false;
	if ((control & TO_AND_FROM_DS) == TO_AND_FROM_DS)
		bytes += FOURTH_ADDRESS;
	if (subtype & SUBTYPE_QOS) {
		if (c->captured < bytes + QOS_CONTROL || c->at[bytes] & AGGREGATE)
			return false;
		bytes += QOS_CONTROL;
		if (control & ORDER)
			bytes += HT_CONTROL;
	}
	return skip(c, padded ? (bytes + 3) & ~3u : bytes);
}

"""Names of signalling messages, from the payload protocol and the first bytes of a message."""

from __future__ import annotations

from ...core.wire import PAYLOAD_NAMES
from ..native import NONE

DIAMETER_PORT = 3868
SIP_PORTS = (5060, 5061)
NGAP = """
    AMFConfigurationUpdate AMFStatusIndication CellTrafficTrace DeactivateTrace DownlinkNASTransport
    DownlinkNonUEAssociatedNRPPaTransport DownlinkRANConfigurationTransfer DownlinkRANStatusTransfer
    DownlinkUEAssociatedNRPPaTransport ErrorIndication HandoverCancel HandoverNotification HandoverPreparation
    HandoverResourceAllocation InitialContextSetup InitialUEMessage LocationReportingControl
    LocationReportingFailureIndication LocationReport NASNonDeliveryIndication NGReset NGSetup OverloadStart
    OverloadStop Paging PathSwitchRequest PDUSessionResourceModify PDUSessionResourceModifyIndication
    PDUSessionResourceRelease PDUSessionResourceSetup PDUSessionResourceNotify PrivateMessage PWSCancel
    PWSFailureIndication PWSRestartIndication RANConfigurationUpdate RerouteNASRequest
    RRCInactiveTransitionReport TraceFailureIndication TraceStart UEContextModification UEContextRelease
    UEContextReleaseRequest UERadioCapabilityCheck UERadioCapabilityInfoIndication UETNLABindingRelease
    UplinkNASTransport UplinkNonUEAssociatedNRPPaTransport UplinkRANConfigurationTransfer
    UplinkRANStatusTransfer UplinkUEAssociatedNRPPaTransport WriteReplaceWarning SecondaryRATDataUsageReport
    UplinkRIMInformationTransfer DownlinkRIMInformationTransfer RetrieveUEInformation UEInformationTransfer
    RANCPRelocationIndication UEContextResume UEContextSuspend UERadioCapabilityIDMapping HandoverSuccess
    UplinkRANEarlyStatusTransfer DownlinkRANEarlyStatusTransfer AMFCPRelocationIndication
    ConnectionEstablishmentIndication BroadcastSessionModification BroadcastSessionRelease BroadcastSessionSetup
    DistributionSetup DistributionRelease MulticastSessionActivation MulticastSessionDeactivation
    MulticastSessionUpdate MulticastGroupPaging BroadcastSessionReleaseRequired
"""
"""Of TS 38.413 9.4.7, by procedure code."""
S1AP = """
    HandoverPreparation HandoverResourceAllocation HandoverNotification PathSwitchRequest HandoverCancel
    E-RABSetup E-RABModify E-RABRelease E-RABReleaseIndication InitialContextSetup Paging DownlinkNASTransport
    InitialUEMessage UplinkNASTransport Reset ErrorIndication NASNonDeliveryIndication S1Setup
    UEContextReleaseRequest DownlinkS1cdma2000tunnelling UplinkS1cdma2000tunnelling UEContextModification
    UECapabilityInfoIndication UEContextRelease eNBStatusTransfer MMEStatusTransfer DeactivateTrace TraceStart
    TraceFailureIndication ENBConfigurationUpdate MMEConfigurationUpdate LocationReportingControl
    LocationReportingFailureIndication LocationReport OverloadStart OverloadStop WriteReplaceWarning
    eNBDirectInformationTransfer MMEDirectInformationTransfer PrivateMessage eNBConfigurationTransfer
    MMEConfigurationTransfer CellTrafficTrace Kill DownlinkUEAssociatedLPPaTransport
    UplinkUEAssociatedLPPaTransport DownlinkNonUEAssociatedLPPaTransport UplinkNonUEAssociatedLPPaTransport
    UERadioCapabilityMatch PWSRestartIndication E-RABModificationIndication PWSFailureIndication
    RerouteNASRequest UEContextModificationIndication ConnectionEstablishmentIndication UEContextSuspend
    UEContextResume NASDeliveryIndication RetrieveUEInformation UEInformationTransfer eNBCPRelocationIndication
    MMECPRelocationIndication SecondaryRATDataUsageReport UERadioCapabilityIDMapping HandoverSuccess
    eNBEarlyStatusTransfer MMEEarlyStatusTransfer
"""
"""Of TS 36.413 9.3.7, by procedure code."""
OUTCOMES = {0x00: "", 0x20: ", successful outcome", 0x40: ", unsuccessful outcome"}
"""Of a procedure: the first byte of an S1AP or NGAP message (aligned PER's index of a choice of three)."""
ADAPTATION = {
    (0, 0): "Error", (0, 1): "Notify", (1, 1): "DATA", (2, 1): "DUNA", (2, 2): "DAVA", (2, 3): "DAUD", (2, 4): "SCON",
    (2, 5): "DUPU", (2, 6): "DRST", (3, 1): "ASP Up", (3, 2): "ASP Down", (3, 3): "BEAT", (3, 4): "ASP Up Ack",
    (3, 5): "ASP Down Ack", (3, 6): "BEAT Ack", (4, 1): "ASP Active", (4, 2): "ASP Inactive", (4, 3): "ASP Active Ack",
    (4, 4): "ASP Inactive Ack", (9, 1): "REG REQ", (9, 2): "REG RSP", (9, 3): "DEREG REQ", (9, 4): "DEREG RSP",
}  # fmt: skip
"""Of M3UA, by class and type of a message (RFC 4666 3.1)."""
M2PA = {(11, 1): "User Data", (11, 2): "Link Status"}
"""RFC 4165 2.1."""
DIAMETER = {
    257: "Capabilities-Exchange", 258: "Re-Auth", 265: "AA", 268: "Diameter-EAP", 271: "Accounting",
    272: "Credit-Control", 274: "Abort-Session", 275: "Session-Termination", 280: "Device-Watchdog",
    282: "Disconnect-Peer", 300: "User-Authorization", 301: "Server-Assignment", 302: "Location-Info",
    303: "Multimedia-Auth", 304: "Registration-Termination", 305: "Push-Profile", 306: "User-Data",
    307: "Profile-Update", 308: "Subscribe-Notifications", 309: "Push-Notification", 316: "Update-Location",
    317: "Cancel-Location", 318: "Authentication-Information", 319: "Insert-Subscriber-Data",
    320: "Delete-Subscriber-Data", 321: "Purge-UE", 322: "Reset", 323: "Notify", 324: "ME-Identity-Check",
}  # fmt: skip
"""Of RFC 6733, 4072, 4006, 7155 and TS 29.229, 29.329, 29.272, by command code."""
SIP = {
    "INVI": "INVITE", "ACK ": "ACK", "BYE ": "BYE", "CANC": "CANCEL", "REGI": "REGISTER", "OPTI": "OPTIONS",
    "PRAC": "PRACK", "UPDA": "UPDATE", "SUBS": "SUBSCRIBE", "NOTI": "NOTIFY", "INFO": "INFO", "MESS": "MESSAGE",
    "REFE": "REFER", "PUBL": "PUBLISH", "SIP/": "response",
}  # fmt: skip
"""RFC 3261 7.1, 7.2 and its extensions, by the first four letters."""


def message_name(ppid: int, begin: int, ports: tuple[int, int]) -> str:
    """The name of a message, such as "NGAP NGSetup"; "" where nothing is known. begin: `detail` of its DATA chunk."""
    protocol = PAYLOAD_NAMES.get(ppid, "")
    if not ppid and DIAMETER_PORT in ports:
        protocol = "Diameter"
    if not ppid and begin != NONE and set(SIP_PORTS) & set(ports):
        words = SIP.get(begin.to_bytes(4, "big").decode("latin-1"))
        return f"SIP {words}" if words else ""
    if begin == NONE:
        return protocol
    words = _words(protocol, begin)
    return f"{protocol} {words}" if words else protocol


def _words(protocol: str, begin: int) -> str:
    if protocol in ("NGAP", "S1AP"):
        names, outcome = (NGAP if protocol == "NGAP" else S1AP).split(), OUTCOMES.get(begin >> 24)
        code = begin >> 16 & 0xFF
        return "" if outcome is None or code >= len(names) else names[code] + outcome
    kind = begin >> 8 & 0xFF, begin & 0xFF
    if protocol == "M3UA" and begin >> 24 == 1:
        return ADAPTATION.get(kind, "")
    if protocol == "M2PA" and begin >> 24 == 1:
        return M2PA.get(kind, "")
    if protocol == "Diameter":
        command = DIAMETER.get(begin & 0xFFFFFF, "")
        return f"{command} {'request' if begin >> 31 else 'answer'}" if command else ""
    return ""

// The options of the dumbbell, and values computed from them. SPDX-License-Identifier: MIT OR Apache-2.0

#pragma once

#include "ns3/core-module.h"
#include "ns3/network-module.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

using ns3::CommandLine;
using ns3::DataRate;
using ns3::Seconds;
using ns3::Time;

inline constexpr uint32_t MSS = 1448;           // 1500 bytes with 20 of IPv4, 20 of TCP and 12 of the timestamp option
inline constexpr uint32_t PACKET = 1500;        // what a full segment counts in a queue
inline constexpr uint32_t UDP_PACKET = 1000;    // with 20 of IPv4 and 8 of UDP
inline constexpr uint32_t LINK_HEADER = 2;      // PPP: what a packet is longer on a link than in a queue
inline constexpr uint32_t SEND_SIZE = 64 * MSS; // what the application hands over at once
inline constexpr uint16_t PORT = 5003;          // with which 50 flows fall into 50 of FQ-CoDel's queues

// Options of the command line.
struct Options
{
    std::string aqm{"pie"};
    std::string cc{"cubic"};
    uint32_t flows{10};
    double rateMbps{100};
    double rttMs{40};
    double bufferBdp{1};
    double durationS{30};
    double warmupS{5};
    uint64_t seed{1};
    double udpLoad{0};              // load of constant-rate UDP, in shares of the bottleneck; 0: none
    uint32_t udpFlows{10};
    uint32_t deviceQueue{0};        // packets that may wait in the device, behind the discipline
    std::string trace;
    double traceStepMs{10};

    void parse(int argc, char* argv[]);
};

// Values computed from the options.
struct Plan
{
    Time oneWay;                    // of the bottleneck
    Time accessOneWay;              // of each access link
    DataRate rate;
    DataRate accessRate;
    uint32_t limit;                 // packets in the bottleneck's queue
    uint32_t ecnThreshold;          // packets; for DCTCP
    uint32_t receiveWindow;         // bytes
    uint32_t sendBuffer;            // bytes

    explicit Plan(const Options& options);
};

// One step of Vigna's splitmix64: a start time that any other program can compute too.
inline uint64_t
splitmix64(uint64_t x)
{
    x += 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
}

// Flow i starts in the i-th slot of 10 ms, somewhere in it by the seed.
inline uint64_t
startNs(uint64_t seed, uint32_t flow)
{
    constexpr uint64_t SLOT = 10'000'000;
    return flow * SLOT + splitmix64(seed * 1'000'003 + flow) % SLOT;
}

inline void
Options::parse(int argc, char* argv[])
{
    CommandLine cmd;
    cmd.AddValue("aqm", "pie, codel, red, fqcodel or taildrop", aqm);
    cmd.AddValue("cc", "newreno, cubic, vegas, bbr, dctcp, hstcp, scalable, htcp, bic, hybla, yeah, veno or westwood", cc);
    cmd.AddValue("flows", "TCP flows", flows);
    cmd.AddValue("rate", "of the bottleneck, Mb/s", rateMbps);
    cmd.AddValue("rtt", "propagation, both ways, ms", rttMs);
    cmd.AddValue("buffer", "of the bottleneck, in bandwidth-delay products", bufferBdp);
    cmd.AddValue("duration", "s", durationS);
    cmd.AddValue("warmup", "s that are not counted", warmupS);
    cmd.AddValue("seed", "of start times and of the disciplines' random numbers", seed);
    cmd.AddValue("udp", "load of constant-rate UDP in shares of the bottleneck; 0 for none", udpLoad);
    cmd.AddValue("udp-flows", "flows that share that load", udpFlows);
    cmd.AddValue("device-queue", "packets that wait in the device: 0, or 1 as ns-3 does by itself", deviceQueue);
    cmd.AddValue("trace", "a file for windows, queue, drops and marks over time (CSV)", trace);
    cmd.AddValue("trace-step", "between two rows of the trace, ms", traceStepMs);
    cmd.Parse(argc, argv);
    NS_ABORT_MSG_IF(rateMbps <= 0 || rttMs <= 0 || bufferBdp <= 0, "rate, rtt and buffer must be positive");
    NS_ABORT_MSG_IF(warmupS < 0 || durationS <= warmupS, "the duration must exceed the warm-up");
    NS_ABORT_MSG_IF(flows == 0 && udpLoad <= 0, "there is nothing to send");
    NS_ABORT_MSG_IF(udpLoad > 0 && udpFlows == 0, "UDP needs a flow");
    NS_ABORT_MSG_IF(deviceQueue > 1, "a device queue is 0 or 1");
}

inline Plan::Plan(const Options& options)
    : oneWay(Seconds(options.rttMs / 1e3 / 4)),
      accessOneWay(Seconds(options.rttMs / 1e3 / 8)),
      rate(static_cast<uint64_t>(std::llround(options.rateMbps * 1e6))),
      accessRate(static_cast<uint64_t>(std::llround(std::max(10 * options.rateMbps, 100.0) * 1e6)))
{
    double bdp = options.rateMbps * 1e6 * options.rttMs / 1e3 / 8 / PACKET;
    limit = static_cast<uint32_t>(std::max(4L, std::lround(options.bufferBdp * bdp)));
    ecnThreshold = static_cast<uint32_t>(std::max(2.0, std::ceil(bdp / 7)));
    // What the bottleneck carries in 4 s, beyond what path and queue hold: a sender that goes on past a lost
    // retransmission until its timeout does not fill it. (ns-3.37 crashes when a window is filled to the byte.)
    receiveWindow = static_cast<uint32_t>(options.rateMbps * 1e6 / 8 * 4 + 4 * PACKET * (bdp + limit));
    sendBuffer = receiveWindow + 4 * SEND_SIZE;
}

// PIE's drop probability in ns-3 under ten times the load that the link carries, then half of it: how long it takes to rise to
// 1 and to fall to 0 (Kunze et al., IM 2021, figure 5); one run, one JSON object on standard output. docs/explanation/ns3.md says what is
// built and why. SPDX-License-Identifier: MIT OR Apache-2.0
//
//   overload --rate=10 --load=10 --rest=0.5 --until=5 --duration=14 --seed=1

#include "measure.h"

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <chrono>
#include <cmath>
#include <iostream>

using namespace ns3;

// PieQueueDisc does not expose its probability, and its attribute allows no threshold above 1, so that a probability of 1 would
// drop what it should only count. An explicit instantiation may name private members.
template <auto PROBABILITY, auto THRESHOLD>
struct Reach
{
    friend double& probabilityOf(PieQueueDisc& pie)
    {
        return pie.*PROBABILITY;
    }

    friend double& thresholdOf(PieQueueDisc& pie)
    {
        return pie.*THRESHOLD;
    }
};

template struct Reach<&PieQueueDisc::m_dropProb, &PieQueueDisc::m_markEcnTh>;
double& probabilityOf(PieQueueDisc& pie);
double& thresholdOf(PieQueueDisc& pie);

namespace
{

constexpr uint32_t PACKET = 1500;               // in the queue, with 20 of IPv4 and 8 of UDP
constexpr uint32_t LINK_HEADER = 2;             // PPP: what a packet is longer on the link than in the queue
constexpr uint16_t PORT = 5003;
constexpr double BUFFER_S = 500e-6;
constexpr double TARGET_S = 125e-6;
constexpr double UPDATE_S = 15e-3 / 128;        // halved seven times
constexpr double STEP_S = 0.25;                 // between two printed values of the probability

// The paper's gains: RFC 8033's by its rule for each halving of the update, and in proportion to the smaller target.
struct Gains
{
    double alpha{0.125};
    double beta{1.25};

    Gains()
    {
        for (int halving = 0; halving < 7; ++halving)
        {
            beta += alpha / 4;
            alpha /= 2;
        }
        alpha *= 15e-3 / TARGET_S;
        beta *= 15e-3 / TARGET_S;
    }
};

// Sends packets of one size at a rate, each later by a random part of the gap.
class Jittered : public Application
{
  public:
    Jittered(Address to, double bitsPerSecond, int64_t stream)
        : peer(to),
          gapNs(PACKET * 8e9 / bitsPerSecond),
          random(CreateObject<UniformRandomVariable>())
    {
        random->SetStream(stream);
    }

  private:
    void StartApplication() override
    {
        begun = Simulator::Now();
        socket = Socket::CreateSocket(GetNode(), UdpSocketFactory::GetTypeId());
        socket->Bind();
        socket->Connect(peer);
        socket->SetIpTos(2);                    // ECT(0); connecting takes that of the address
        plan();
    }

    void StopApplication() override
    {
        next.Cancel();
    }

    void plan()
    {
        double due = (static_cast<double>(sent) + random->GetValue()) * gapNs;
        Time at = begun + NanoSeconds(static_cast<int64_t>(due));
        next = Simulator::Schedule(at - Simulator::Now(), &Jittered::send, this);
    }

    void send()
    {
        socket->Send(Create<Packet>(PACKET - 28));
        ++sent;
        plan();
    }

    Address peer;
    double gapNs;
    uint64_t sent{0};
    Time begun;
    Ptr<UniformRandomVariable> random;
    Ptr<Socket> socket;
    EventId next;
};

class Overload
{
  public:
    Overload(int argc, char* argv[]);
    std::string run();

  private:
    void build();
    void look();

    double rateGbps{10};
    double load{10};
    double rest{0.5};
    double untilS{5};
    double durationS{14};
    uint64_t seed{1};
    Ptr<PieQueueDisc> pie;
    double riseS{-1};
    double fallS{-1};
    std::vector<double> course;
};

Overload::Overload(int argc, char* argv[])
{
    CommandLine cmd;
    cmd.AddValue("rate", "of the link, Gb/s", rateGbps);
    cmd.AddValue("load", "in shares of that, at first", load);
    cmd.AddValue("rest", "in shares of that, then", rest);
    cmd.AddValue("until", "when the overload ends, s", untilS);
    cmd.AddValue("duration", "s", durationS);
    cmd.AddValue("seed", "of what is random", seed);
    cmd.Parse(argc, argv);
    NS_ABORT_MSG_IF(rateGbps <= 0 || rest <= 0 || load <= rest || untilS <= 0, "there is no overload");
    RngSeedManager::SetSeed(1);
    RngSeedManager::SetRun(seed);
    build();
}

void
Overload::build()
{
    NodeContainer nodes(2);
    InternetStackHelper internet;
    internet.SetIpv6StackInstall(false);
    internet.InstallAll();

    // So that a packet takes as long on the link as its bytes in the queue say.
    double rate = rateGbps * 1e9;
    auto onLink = static_cast<uint64_t>(std::llround(rate * (PACKET + LINK_HEADER) / PACKET));
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(onLink)));
    link.SetChannelAttribute("Delay", StringValue("1us"));
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("2p"));
    NetDeviceContainer devices = link.Install(nodes);

    // As many as wait for no longer than the buffer is, and one more, which the last of them waits for.
    auto limit = static_cast<uint32_t>(rate * BUFFER_S / 8 / PACKET) + 1;
    Gains gains;
    TrafficControlHelper control;
    control.SetRootQueueDisc("ns3::PieQueueDisc",
                             "MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, limit)),
                             "QueueDelayReference", TimeValue(Seconds(TARGET_S)),
                             "Tupdate", TimeValue(Seconds(UPDATE_S)),
                             "A", DoubleValue(gains.alpha),
                             "B", DoubleValue(gains.beta),
                             "UseEcn", BooleanValue(true),
                             "MarkEcnThreshold", DoubleValue(1));
    pie = DynamicCast<PieQueueDisc>(control.Install(devices.Get(0)).Get(0));
    pie->AssignStreams(0);
    thresholdOf(*pie) = 2;

    // Without this a packet would wait in the device, where PIE does not see it.
    Ptr<NetDevice> device = devices.Get(0);
    device->TraceConnectWithoutContext("PhyTxBegin", Callback<void, Ptr<const Packet>>([device](Ptr<const Packet>) {
                                           device->GetObject<NetDeviceQueueInterface>()->GetTxQueue(0)->Stop();
                                       }));
    device->TraceConnectWithoutContext("PhyTxEnd", Callback<void, Ptr<const Packet>>([device](Ptr<const Packet>) {
                                           device->GetObject<NetDeviceQueueInterface>()->GetTxQueue(0)->Wake();
                                       }));

    Ipv4AddressHelper addresses("10.1.0.0", "255.255.255.252");
    InetSocketAddress to(addresses.Assign(devices).GetAddress(1), PORT);
    auto sink = CreateObject<PacketSink>();
    sink->SetAttribute("Protocol", TypeIdValue(UdpSocketFactory::GetTypeId()));
    sink->SetAttribute("Local", AddressValue(InetSocketAddress(Ipv4Address::GetAny(), PORT)));
    nodes.Get(1)->AddApplication(sink);
    auto more = CreateObject<Jittered>(to, load * rate, 1);
    more->SetStopTime(Seconds(untilS));
    nodes.Get(0)->AddApplication(more);
    auto less = CreateObject<Jittered>(to, rest * rate, 2);
    less->SetStartTime(Seconds(untilS));
    nodes.Get(0)->AddApplication(less);
    // A nanosecond behind each update.
    Simulator::Schedule(NanoSeconds(1), &Overload::look, this);
}

void
Overload::look()
{
    double now = Simulator::Now().GetSeconds();
    double probability = probabilityOf(*pie);
    if (riseS < 0 && probability >= 1)
    {
        riseS = now;
    }
    if (riseS >= 0 && fallS < 0 && now >= untilS && probability <= 0)
    {
        fallS = now - untilS;
    }
    if (now >= static_cast<double>(course.size()) * STEP_S)
    {
        course.push_back(probability);
    }
    Simulator::Schedule(Seconds(UPDATE_S), &Overload::look, this);
}

std::string
Overload::run()
{
    Simulator::Stop(Seconds(durationS));
    auto before = std::chrono::steady_clock::now();
    Simulator::Run();
    double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
    const QueueDisc::Stats& stats = pie->GetStats();
    std::map<std::string, uint64_t> drops(stats.nDroppedPacketsBeforeEnqueue.begin(),
                                          stats.nDroppedPacketsBeforeEnqueue.end());
    Json json;
    json.string("simulator", "ns-3 3.37").number("rate_gbps", rateGbps).number("load", load).number("rest", rest);
    json.number("until_s", untilS).number("duration_s", durationS).number("seed", seed);
    json.number("rise_s", riseS).number("fall_s", fallS).counts("drops", drops);
    json.number("marks", stats.nTotalMarkedPackets).number("sent", stats.nTotalDequeuedPackets);
    json.number("step_s", STEP_S).list("probability", course).number("wall_s", wall);
    Simulator::Destroy();
    return json.text();
}

} // namespace

int
main(int argc, char* argv[])
{
    std::cout << Overload(argc, argv).run() << std::endl;
    return 0;
}

// A dumbbell in ns-3: N senders, two routers, N receivers, one bottleneck with a queue discipline; one run, one JSON
// object on standard output. docs/explanation/ns3.md describes the network and the reasons. SPDX-License-Identifier: MIT OR Apache-2.0
//
//   dumbbell --aqm=pie --cc=cubic --flows=10 --rate=100 --rtt=40 --buffer=1 --duration=30 --warmup=5 --seed=1

#include "measure.h"
#include "options.h"

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/tcp-westwood.h"
#include "ns3/traffic-control-module.h"

#include <chrono>
#include <ctime>
#include <fstream>
#include <iostream>

using namespace ns3;

namespace
{

// Sends packets of one size, packet k at start + k * interval, rounded once, so that no error adds up.
class ConstantRate : public Application
{
  public:
    void setup(Address to, double intervalNs)
    {
        peer = to;
        interval = intervalNs;
    }

  private:
    void StartApplication() override
    {
        begun = Simulator::Now();
        socket = Socket::CreateSocket(GetNode(), UdpSocketFactory::GetTypeId());
        socket->Bind();
        socket->Connect(peer);
        send();
    }

    void StopApplication() override
    {
        next.Cancel();
    }

    void send()
    {
        socket->Send(Create<Packet>(UDP_PACKET - 28));
        ++sent;
        Time due = begun + NanoSeconds(static_cast<int64_t>(std::llround(static_cast<double>(sent) * interval)));
        next = Simulator::Schedule(due - Simulator::Now(), &ConstantRate::send, this);
    }

    Address peer;
    double interval{0};
    uint64_t sent{0};
    Time begun;
    Ptr<Socket> socket;
    EventId next;
};

// Builds the network, runs it, and prints the results.
class Dumbbell
{
  public:
    explicit Dumbbell(const Options& options);
    std::string run();

  private:
    void setDefaults();
    void build();
    void addQueue(Ptr<NetDevice> device);
    void addFlows();
    void watchQueue(Ptr<QueueDisc> queue, Ptr<PointToPointNetDevice> device);
    void watchSocket(uint32_t flow);
    void beginCounting();
    void writeTrace();
    bool counting() const;

    Options options;
    Plan plan;
    NodeContainer senders, receivers, routers;
    std::vector<Ipv4Address> receiverAddress;
    std::vector<Ptr<BulkSendApplication>> sources;
    std::vector<Ptr<PacketSink>> sinks;
    std::vector<uint64_t> receivedBefore;
    Ptr<QueueDisc> bottleneck;

    QueueCounts counts;
    Time sojourn;                   // of the packet that left the discipline last, if it was not dropped then
    bool leaving{false};
    uint64_t hops{0};
    uint64_t recoveries{0};
    uint64_t timeouts{0};
    std::ofstream trace;
    std::vector<uint32_t> cwnd, ssthresh;
};

Dumbbell::Dumbbell(const Options& asked)
    : options(asked),
      plan(asked),
      cwnd(asked.flows),
      ssthresh(asked.flows)
{
    RngSeedManager::SetSeed(1);
    RngSeedManager::SetRun(options.seed);
    setDefaults();
    build();
    addFlows();
}

void
Dumbbell::setDefaults()
{
    static const std::map<std::string, std::string> CONTROLS{{"newreno", "ns3::TcpNewReno"},
                                                             {"cubic", "ns3::TcpCubic"},
                                                             {"vegas", "ns3::TcpVegas"},
                                                             {"bbr", "ns3::TcpBbr"},
                                                             {"dctcp", "ns3::TcpDctcp"},
                                                             {"hstcp", "ns3::TcpHighSpeed"},
                                                             {"scalable", "ns3::TcpScalable"},
                                                             {"htcp", "ns3::TcpHtcp"},
                                                             {"bic", "ns3::TcpBic"},
                                                             {"hybla", "ns3::TcpHybla"},
                                                             {"yeah", "ns3::TcpYeah"},
                                                             {"veno", "ns3::TcpVeno"},
                                                             {"westwood", "ns3::TcpWestwood"}};
    auto control = CONTROLS.find(options.cc);
    NS_ABORT_MSG_IF(control == CONTROLS.end(), "unknown congestion control " << options.cc);
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName(control->second)));
    Config::SetDefault("ns3::TcpWestwood::ProtocolType", EnumValue(TcpWestwood::WESTWOODPLUS));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(MSS));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(plan.sendBuffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(plan.receiveWindow));
}

void
Dumbbell::build()
{
    uint32_t pairs = options.flows + (options.udpLoad > 0 ? options.udpFlows : 0);
    senders.Create(pairs);
    receivers.Create(pairs);
    routers.Create(2);
    InternetStackHelper internet;
    internet.SetRoutingHelper(Ipv4StaticRoutingHelper());
    internet.SetIpv6StackInstall(false);
    internet.InstallAll();

    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", DataRateValue(plan.accessRate));
    access.SetChannelAttribute("Delay", TimeValue(plan.accessOneWay));
    access.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("1000000p"));
    access.DisableFlowControl();    // so no discipline is put before these devices: they never drop

    PointToPointHelper middle;
    middle.SetDeviceAttribute("DataRate", DataRateValue(plan.rate));
    middle.SetChannelAttribute("Delay", TimeValue(plan.oneWay));
    middle.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue(options.deviceQueue ? "1p" : "2p"));
    NetDeviceContainer bottleneckLink = middle.Install(routers);
    addQueue(bottleneckLink.Get(0));
    TrafficControlHelper back;
    back.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", StringValue("1000000p"));
    back.Install(bottleneckLink.Get(1));

    Ipv4AddressHelper middleNet("10.3.0.0", "255.255.255.252");
    Ipv4InterfaceContainer middleAddress = middleNet.Assign(bottleneckLink);
    Ipv4AddressHelper left("10.1.0.0", "255.255.255.252");
    Ipv4AddressHelper right("10.2.0.0", "255.255.255.252");
    Ipv4StaticRoutingHelper routing;
    std::vector<NetDeviceContainer> links{bottleneckLink};
    for (uint32_t i = 0; i < pairs; ++i)
    {
        links.push_back(access.Install(senders.Get(i), routers.Get(0)));
        Ipv4InterfaceContainer leftAddress = left.Assign(links.back());
        left.NewNetwork();
        links.push_back(access.Install(routers.Get(1), receivers.Get(i)));
        Ipv4InterfaceContainer rightAddress = right.Assign(links.back());
        right.NewNetwork();
        receiverAddress.push_back(rightAddress.GetAddress(1));
        routing.GetStaticRouting(senders.Get(i)->GetObject<Ipv4>())->SetDefaultRoute(leftAddress.GetAddress(1), 1);
        routing.GetStaticRouting(receivers.Get(i)->GetObject<Ipv4>())->SetDefaultRoute(rightAddress.GetAddress(0), 1);
    }
    routing.GetStaticRouting(routers.Get(0)->GetObject<Ipv4>())
        ->AddNetworkRouteTo("10.2.0.0", "255.255.0.0", middleAddress.GetAddress(1), 1);
    routing.GetStaticRouting(routers.Get(1)->GetObject<Ipv4>())
        ->AddNetworkRouteTo("10.1.0.0", "255.255.0.0", middleAddress.GetAddress(0), 1);

    for (const NetDeviceContainer& link : links)
    {
        for (uint32_t end = 0; end < 2; ++end)
        {
            Callback<void, Ptr<const Packet>> countHop([this](Ptr<const Packet>) { ++hops; });
            link.Get(end)->TraceConnectWithoutContext("PhyTxEnd", countHop);
        }
    }
}

void
Dumbbell::addQueue(Ptr<NetDevice> device)
{
    QueueSizeValue limit(QueueSize(QueueSizeUnit::PACKETS, plan.limit));
    Time ceThreshold = Seconds(plan.ecnThreshold * PACKET * 8.0 / static_cast<double>(plan.rate.GetBitRate()));
    bool dctcp = options.cc == "dctcp" && options.flows > 0;
    ObjectFactory factory;
    if (options.aqm == "taildrop")
    {
        factory.SetTypeId("ns3::FifoQueueDisc");
    }
    else if (options.aqm == "pie")
    {
        factory.SetTypeId("ns3::PieQueueDisc");
        factory.Set("UseEcn", BooleanValue(dctcp));
    }
    else if (options.aqm == "codel" || options.aqm == "fqcodel")
    {
        factory.SetTypeId(options.aqm == "codel" ? "ns3::CoDelQueueDisc" : "ns3::FqCoDelQueueDisc");
        factory.Set("UseEcn", BooleanValue(dctcp));
        if (dctcp)
        {
            factory.Set("CeThreshold", TimeValue(ceThreshold));
        }
    }
    else if (options.aqm == "red")
    {
        factory.SetTypeId("ns3::RedQueueDisc");
        factory.Set("LinkBandwidth", DataRateValue(plan.rate));
        factory.Set("MeanPktSize", UintegerValue(PACKET));
        if (dctcp)
        {
            // Marks every packet that finds K or more before it, as DCTCP's switches do.
            factory.Set("UseEcn", BooleanValue(true));
            factory.Set("UseHardDrop", BooleanValue(false));
            factory.Set("Gentle", BooleanValue(false));
            factory.Set("QW", DoubleValue(1));
            factory.Set("MinTh", DoubleValue(plan.ecnThreshold));
            factory.Set("MaxTh", DoubleValue(plan.ecnThreshold));
        }
    }
    else
    {
        NS_ABORT_MSG("unknown queue discipline " << options.aqm);
    }
    factory.Set("MaxSize", limit);
    bottleneck = factory.Create<QueueDisc>();
    if (auto pie = DynamicCast<PieQueueDisc>(bottleneck))
    {
        pie->AssignStreams(1);
    }
    if (auto red = DynamicCast<RedQueueDisc>(bottleneck))
    {
        red->AssignStreams(1);
    }
    device->GetNode()->GetObject<TrafficControlLayer>()->SetRootQueueDiscOnDevice(device, bottleneck);
    watchQueue(bottleneck, DynamicCast<PointToPointNetDevice>(device));
}

void
Dumbbell::watchQueue(Ptr<QueueDisc> queue, Ptr<PointToPointNetDevice> device)
{
    using Item = Ptr<const QueueDiscItem>;
    auto reasonOf = [](const char* reason) {
        // A child's reason comes with a parenthesis of its parent's before it.
        std::string text(reason);
        size_t end = text.rfind(") ");
        return end == std::string::npos ? text : text.substr(end + 2);
    };
    auto drop = [this, reasonOf](Item, const char* reason) {
        if (counting())
        {
            ++counts.dropped;
            ++counts.dropsByReason[reasonOf(reason)];
        }
        if (trace.is_open())
        {
            trace << Simulator::Now().GetSeconds() << ",drop,," << reasonOf(reason) << ",,\n";
        }
    };
    queue->TraceConnectWithoutContext("Enqueue", Callback<void, Item>([this](Item) { counts.offered += counting(); }));
    queue->TraceConnectWithoutContext("Dequeue", Callback<void, Item>([this](Item item) {
                                          sojourn = Simulator::Now() - item->GetTimeStamp();
                                          leaving = true;
                                      }));
    queue->TraceConnectWithoutContext("DropBeforeEnqueue",
                                      Callback<void, Item, const char*>([this, drop](Item item, const char* reason) {
                                          counts.offered += counting();
                                          drop(item, reason);
                                      }));
    queue->TraceConnectWithoutContext("DropAfterDequeue",
                                      Callback<void, Item, const char*>([this, drop](Item item, const char* reason) {
                                          leaving = false;
                                          drop(item, reason);
                                      }));
    queue->TraceConnectWithoutContext("Mark",
                                      Callback<void, Item, const char*>([this, reasonOf](Item, const char* reason) {
                                          if (counting())
                                          {
                                              ++counts.marked;
                                              ++counts.marksByReason[reasonOf(reason)];
                                          }
                                      }));

    // Without this, one packet more than the discipline knows of would always wait in the device.
    bool direct = options.deviceQueue == 0;
    device->TraceConnectWithoutContext(
        "PhyTxBegin",
        Callback<void, Ptr<const Packet>>([this, device, direct](Ptr<const Packet>) {
            if (direct)
            {
                device->GetObject<NetDeviceQueueInterface>()->GetTxQueue(0)->Stop();
            }
            if (leaving && counting())
            {
                counts.delays.add(static_cast<uint64_t>(sojourn.GetNanoSeconds()));
                ++counts.sent;
            }
            leaving = false;
        }));
    if (direct)
    {
        device->TraceConnectWithoutContext("PhyTxEnd", Callback<void, Ptr<const Packet>>([device](Ptr<const Packet>) {
                                               device->GetObject<NetDeviceQueueInterface>()->GetTxQueue(0)->Wake();
                                           }));
    }
}

void
Dumbbell::addFlows()
{
    Time end = Seconds(options.durationS);
    for (uint32_t i = 0; i < receiverAddress.size(); ++i)
    {
        InetSocketAddress to(receiverAddress[i], PORT);
        Time start = NanoSeconds(static_cast<int64_t>(startNs(options.seed, i)));
        bool tcp = i < options.flows;
        TypeId protocol = tcp ? TcpSocketFactory::GetTypeId() : UdpSocketFactory::GetTypeId();
        auto sink = CreateObject<PacketSink>();
        sink->SetAttribute("Protocol", TypeIdValue(protocol));
        sink->SetAttribute("Local", AddressValue(InetSocketAddress(Ipv4Address::GetAny(), PORT)));
        receivers.Get(i)->AddApplication(sink);
        sinks.push_back(sink);
        if (tcp)
        {
            auto source = CreateObject<BulkSendApplication>();
            source->SetAttribute("Protocol", TypeIdValue(protocol));
            source->SetAttribute("Remote", AddressValue(to));
            source->SetAttribute("SendSize", UintegerValue(SEND_SIZE));   // few objects, however large the buffer
            source->SetStartTime(start);
            source->SetStopTime(end);
            senders.Get(i)->AddApplication(source);
            sources.push_back(source);
            Simulator::Schedule(start + NanoSeconds(1), &Dumbbell::watchSocket, this, i);
        }
        else
        {
            double rate = options.udpLoad * static_cast<double>(plan.rate.GetBitRate()) / options.udpFlows;
            auto source = CreateObject<ConstantRate>();
            source->setup(to, (UDP_PACKET + LINK_HEADER) * 8e9 / rate);
            source->SetStartTime(start);
            source->SetStopTime(end);
            senders.Get(i)->AddApplication(source);
        }
    }
}

void
Dumbbell::watchSocket(uint32_t flow)
{
    using State = TcpSocketState::TcpCongState_t;
    Ptr<Socket> socket = sources[flow]->GetSocket();
    socket->TraceConnectWithoutContext("CongState", Callback<void, State, State>([this](State, State now) {
                                           recoveries += counting() && now == TcpSocketState::CA_RECOVERY;
                                           timeouts += counting() && now == TcpSocketState::CA_LOSS;
                                       }));
    if (trace.is_open())
    {
        using Values = Callback<void, uint32_t, uint32_t>;
        socket->TraceConnectWithoutContext("CongestionWindow",
                                           Values([this, flow](uint32_t, uint32_t now) { cwnd[flow] = now; }));
        socket->TraceConnectWithoutContext("SlowStartThreshold",
                                           Values([this, flow](uint32_t, uint32_t now) { ssthresh[flow] = now; }));
        socket->TraceConnectWithoutContext("CongState", Callback<void, State, State>([this, flow](State, State now) {
                                               trace << Simulator::Now().GetSeconds() << ",state," << flow << ","
                                                     << TcpSocketState::TcpCongStateName[now] << ",,\n";
                                           }));
    }
}

std::string
Dumbbell::run()
{
    if (!options.trace.empty())
    {
        trace.open(options.trace);
        NS_ABORT_MSG_UNLESS(trace, "cannot write " << options.trace);
        trace.precision(9);
        trace << "time,what,flow,value,value2,value3\n";
        Simulator::Schedule(Seconds(0), &Dumbbell::writeTrace, this);
    }
    Simulator::Schedule(Seconds(options.warmupS), &Dumbbell::beginCounting, this);
    Simulator::Stop(Seconds(options.durationS));
    auto wallBefore = std::chrono::steady_clock::now();
    std::clock_t cpuBefore = std::clock();
    Simulator::Run();
    double cpu = static_cast<double>(std::clock() - cpuBefore) / CLOCKS_PER_SEC;
    double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - wallBefore).count();

    double seconds = options.durationS - options.warmupS;
    std::vector<double> goodput;
    double total = 0;
    std::vector<uint64_t> starts;
    for (size_t i = 0; i < sinks.size(); ++i)
    {
        goodput.push_back(static_cast<double>(sinks[i]->GetTotalRx() - receivedBefore[i]) * 8 / seconds / 1e6);
        total += goodput.back();
        starts.push_back(startNs(options.seed, static_cast<uint32_t>(i)));
    }
    Json json;
    json.string("simulator", "ns-3 3.37").string("aqm", options.aqm).string("cc", options.cc);
    json.number("flows", options.flows).number("rate_mbps", options.rateMbps).number("rtt_ms", options.rttMs);
    json.number("buffer_bdp", options.bufferBdp).number("duration_s", options.durationS);
    json.number("warmup_s", options.warmupS).number("seed", options.seed).number("udp_load", options.udpLoad);
    json.number("udp_flows", options.udpLoad > 0 ? options.udpFlows : 0).number("device_queue", options.deviceQueue);
    json.number("limit_packets", plan.limit).number("ecn_threshold_packets", plan.ecnThreshold);
    json.number("receive_window_bytes", plan.receiveWindow).list("start_ns", starts);
    json.number("goodput_mbps", total).list("flow_goodput_mbps", goodput);
    json.number("offered", counts.offered).number("sent", counts.sent).number("dropped", counts.dropped);
    json.number("marked", counts.marked).number("queued_at_start", counts.queuedAtStart);
    json.number("queued_at_end", bottleneck->GetNPackets());
    json.counts("drops", counts.dropsByReason).counts("marks", counts.marksByReason);
    json.number("delay_mean_ms", counts.delays.meanMs()).number("delay_p50_ms", counts.delays.percentileMs(0.5));
    json.number("delay_p95_ms", counts.delays.percentileMs(0.95));
    json.number("delay_p99_ms", counts.delays.percentileMs(0.99)).number("delay_count", counts.delays.count());
    json.number("recoveries", recoveries).number("timeouts", timeouts);
    json.number("queues_used", bottleneck->GetNQueueDiscClasses());
    json.number("packet_hops", hops).number("wall_s", wall).number("cpu_s", cpu);
    Simulator::Destroy();
    return json.text();
}

void
Dumbbell::beginCounting()
{
    counts.queuedAtStart = bottleneck->GetNPackets();
    for (const auto& sink : sinks)
    {
        receivedBefore.push_back(sink->GetTotalRx());
    }
}

void
Dumbbell::writeTrace()
{
    double now = Simulator::Now().GetSeconds();
    trace << now << ",queue,," << bottleneck->GetNPackets() << "," << bottleneck->GetNBytes() << ","
          << sojourn.GetSeconds() * 1e3 << "\n";
    for (uint32_t i = 0; i < sources.size(); ++i)
    {
        trace << now << ",window," << i << "," << cwnd[i] << "," << ssthresh[i] << "," << sinks[i]->GetTotalRx()
              << "\n";
    }
    Simulator::Schedule(MilliSeconds(1) * options.traceStepMs, &Dumbbell::writeTrace, this);
}

bool
Dumbbell::counting() const
{
    return !receivedBefore.empty();
}

} // namespace

int
main(int argc, char* argv[])
{
    Options options;
    options.parse(argc, argv);
    std::cout << Dumbbell(options).run() << std::endl;
    return 0;
}

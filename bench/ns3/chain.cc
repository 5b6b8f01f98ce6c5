// Routers in a chain in ns-3, and TCP flows between any two of them: one run, one JSON object on standard output, with a
// hash over every packet that leaves the queues between the routers. docs/explanation/ns3.md explains its use.
// SPDX-License-Identifier: MIT OR Apache-2.0
//
//   chain --hops=1 --rate=45000000 --delay=5750000 --limit=90 --writes=512 --send-buffer=10000000
//         --receive-buffer=10000000 --flows=bbr,0,1,0,5000000 --end=1000000000

#include "measure.h"

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <fstream>
#include <iostream>

using namespace ns3;

namespace
{

constexpr uint32_t MSS = 1448;
constexpr uint16_t PORT = 5003;

// The options. Times are in nanoseconds, rates in bits per second, sizes in bytes.
struct Options
{
    uint32_t hops{1};
    uint64_t rate{10000000};
    uint64_t delay{10000000};
    uint64_t accessRate{100000000};
    uint64_t accessDelay{1000000};
    uint32_t limit{100};            // packets
    std::string aqm{"taildrop"};
    bool bothWays{false};
    uint32_t writes{512};
    uint32_t sendBuffer{131072};
    uint32_t receiveBuffer{131072};
    uint64_t end{1000000000};
    uint64_t seed{1};
    std::string flows;
    std::string trace;
};

// One flow: its congestion control, the routers that it goes from and to, how much farther away the sender is than others,
// and its start.
struct Flow
{
    std::string control;
    uint32_t from;
    uint32_t to;
    uint64_t farther;
    uint64_t start;
};

// The counters of a queue between two routers.
struct QueueSeen
{
    uint64_t departed{0};
    uint64_t dropped{0};
    uint64_t marked{0};
    uint64_t hash{0};               // of all that left
    uint64_t dropHash{0};
    Delays delays;
};

// The reported fields of a packet, read before the device adds its headers.
struct PacketFields
{
    uint64_t flow{0};
    uint64_t number{0};
    uint64_t bytes{0};
    uint64_t enqueued{0};
    bool valid{false};
};

// FNV-1a of some numbers; those of all packets are added up.
uint64_t
hashOf(const std::vector<uint64_t>& numbers)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (uint64_t number : numbers)
    {
        for (int byte = 0; byte < 8; ++byte)
        {
            hash = (hash ^ ((number >> (8 * byte)) & 0xff)) * 0x100000001b3;
        }
    }
    return hash;
}

class Chain
{
  public:
    explicit Chain(const Options& options);
    std::string run();

  private:
    void connectRouters();
    void addFlow(uint32_t number);
    void addQueue(Ptr<NetDevice> device, bool bounded);
    PacketFields fields_of(Ptr<const QueueDiscItem> item) const;
    void add(QueueSeen& seen, const PacketFields& packet, bool drop);

    Options options;
    std::vector<Flow> flows;
    NodeContainer routers, hosts;
    InternetStackHelper internet;
    std::map<Ipv4Address, uint32_t> numbers;
    std::vector<std::unique_ptr<QueueSeen>> seen;
    std::vector<Ptr<PacketSink>> sinks;
    std::ofstream trace;
};

std::vector<Flow>
parseFlows(const std::string& text)
{
    std::vector<Flow> flows;
    std::istringstream all(text);
    for (std::string one; std::getline(all, one, ';');)
    {
        std::replace(one.begin(), one.end(), ',', ' ');
        std::istringstream fields(one);
        Flow flow;
        fields >> flow.control >> flow.from >> flow.to >> flow.farther >> flow.start;
        NS_ABORT_MSG_UNLESS(fields, "a flow is CONTROL,FROM,TO,FARTHER,START, not " << one);
        flows.push_back(flow);
    }
    return flows;
}

Chain::Chain(const Options& asked)
    : options(asked),
      flows(parseFlows(asked.flows))
{
    if (!options.trace.empty())
    {
        trace.open(options.trace);
        NS_ABORT_MSG_UNLESS(trace, "cannot write " << options.trace);
    }
    RngSeedManager::SetSeed(1);
    RngSeedManager::SetRun(options.seed);
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(MSS));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(options.sendBuffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(options.receiveBuffer));
    routers.Create(options.hops + 1);
    hosts.Create(2 * static_cast<uint32_t>(flows.size()));
    internet.SetIpv6StackInstall(false);
    internet.InstallAll();
    connectRouters();
    for (uint32_t number = 0; number < flows.size(); ++number)
    {
        addFlow(number);
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
}

void
Chain::connectRouters()
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(options.rate)));
    link.SetChannelAttribute("Delay", TimeValue(NanoSeconds(options.delay)));
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("2p"));
    Ipv4AddressHelper net("10.3.0.0", "255.255.255.252");
    for (uint32_t hop = 0; hop < options.hops; ++hop)
    {
        NetDeviceContainer ends = link.Install(routers.Get(hop), routers.Get(hop + 1));
        addQueue(ends.Get(0), true);
        addQueue(ends.Get(1), options.bothWays);
        net.Assign(ends);
        net.NewNetwork();
    }
}

void
Chain::addQueue(Ptr<NetDevice> device, bool bounded)
{
    static const std::map<std::string, std::string> KINDS{{"taildrop", "ns3::FifoQueueDisc"},
                                                          {"codel", "ns3::CoDelQueueDisc"},
                                                          {"fqcodel", "ns3::FqCoDelQueueDisc"},
                                                          {"pie", "ns3::PieQueueDisc"}};
    auto kind = KINDS.find(bounded ? options.aqm : "taildrop");
    NS_ABORT_MSG_IF(kind == KINDS.end(), "unknown queue discipline " << options.aqm);
    ObjectFactory factory;
    factory.SetTypeId(kind->second);
    factory.Set("MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, bounded ? options.limit : 1000000)));
    Ptr<QueueDisc> queue = factory.Create<QueueDisc>();
    if (auto pie = DynamicCast<PieQueueDisc>(queue))
    {
        pie->AssignStreams(1);
    }
    device->GetNode()->GetObject<TrafficControlLayer>()->SetRootQueueDiscOnDevice(device, queue);
    seen.push_back(std::make_unique<QueueSeen>());
    QueueSeen* all = seen.back().get();

    using Item = Ptr<const QueueDiscItem>;
    using Dropped = Callback<void, Item, const char*>;
    auto last = std::make_shared<PacketFields>();
    queue->TraceConnectWithoutContext("Dequeue", Callback<void, Item>([this, last](Item item) { *last = fields_of(item); }));
    queue->TraceConnectWithoutContext("DropBeforeEnqueue",
                                      Dropped([this, all](Item item, const char*) { add(*all, fields_of(item), true); }));
    queue->TraceConnectWithoutContext("DropAfterDequeue", Dropped([this, all, last](Item item, const char*) {
                                          add(*all, fields_of(item), true);
                                          last->valid = false;
                                      }));
    queue->TraceConnectWithoutContext("Mark", Dropped([all](Item, const char*) { ++all->marked; }));
    // The device holds nothing behind the discipline, as in dumbbell.cc.
    auto direct = DynamicCast<PointToPointNetDevice>(device);
    using Sent = Callback<void, Ptr<const Packet>>;
    direct->TraceConnectWithoutContext("PhyTxBegin", Sent([this, all, last, direct](Ptr<const Packet>) {
                                           direct->GetObject<NetDeviceQueueInterface>()->GetTxQueue(0)->Stop();
                                           if (last->valid)
                                           {
                                               add(*all, *last, false);
                                           }
                                           last->valid = false;
                                       }));
    direct->TraceConnectWithoutContext("PhyTxEnd", Sent([direct](Ptr<const Packet>) {
                                           direct->GetObject<NetDeviceQueueInterface>()->GetTxQueue(0)->Wake();
                                       }));
}

PacketFields
Chain::fields_of(Ptr<const QueueDiscItem> item) const
{
    auto ip = DynamicCast<const Ipv4QueueDiscItem>(item);
    TcpHeader tcp;
    item->GetPacket()->PeekHeader(tcp);
    // Of what carries data the number, of what does not the one that it acknowledges.
    bool data = item->GetPacket()->GetSize() > tcp.GetSerializedSize();
    return {numbers.at(ip->GetHeader().GetSource()),
            (data ? tcp.GetSequenceNumber() : tcp.GetAckNumber()).GetValue(),
            item->GetSize(),
            static_cast<uint64_t>(item->GetTimeStamp().GetNanoSeconds()),
            true};
}

void
Chain::add(QueueSeen& all, const PacketFields& packet, bool drop)
{
    auto now = static_cast<uint64_t>(Simulator::Now().GetNanoSeconds());
    uint64_t value = hashOf({now, packet.flow, packet.number, packet.bytes});
    if (trace.is_open())
    {
        trace << now << (drop ? ",drop," : ",sent,") << packet.flow << "," << packet.number << "," << packet.bytes
              << "\n";
    }
    if (drop)
    {
        ++all.dropped;
        all.dropHash += value;
        return;
    }
    ++all.departed;
    all.hash += value;
    all.delays.add(now - packet.enqueued);
}

void
Chain::addFlow(uint32_t number)
{
    static const std::map<std::string, std::string> CONTROLS{{"newreno", "ns3::TcpNewReno"},
                                                             {"cubic", "ns3::TcpCubic"},
                                                             {"vegas", "ns3::TcpVegas"},
                                                             {"bbr", "ns3::TcpBbr"}};
    const Flow& flow = flows[number];
    auto control = CONTROLS.find(flow.control);
    NS_ABORT_MSG_IF(control == CONTROLS.end(), "unknown congestion control " << flow.control);
    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", DataRateValue(DataRate(options.accessRate)));
    access.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("1000000p"));
    access.DisableFlowControl();
    Ptr<Node> sender = hosts.Get(2 * number);
    Ptr<Node> receiver = hosts.Get(2 * number + 1);
    Ipv4AddressHelper net(Ipv4Address(0x0a010000 + number * 8), "255.255.255.252");
    access.SetChannelAttribute("Delay", TimeValue(NanoSeconds(options.accessDelay + flow.farther)));
    Ipv4Address source = net.Assign(access.Install(sender, routers.Get(flow.from))).GetAddress(0);
    net.NewNetwork();
    access.SetChannelAttribute("Delay", TimeValue(NanoSeconds(options.accessDelay)));
    Ipv4Address destination = net.Assign(access.Install(routers.Get(flow.to), receiver)).GetAddress(1);
    numbers[source] = numbers[destination] = number;
    for (Ptr<Node> host : {sender, receiver})
    {
        host->GetObject<TcpL4Protocol>()->SetAttribute("SocketType",
                                                       TypeIdValue(TypeId::LookupByName(control->second)));
    }

    auto sink = CreateObject<PacketSink>();
    sink->SetAttribute("Protocol", TypeIdValue(TcpSocketFactory::GetTypeId()));
    sink->SetAttribute("Local", AddressValue(InetSocketAddress(Ipv4Address::GetAny(), PORT)));
    receiver->AddApplication(sink);
    sinks.push_back(sink);
    auto bulk = CreateObject<BulkSendApplication>();
    bulk->SetAttribute("Protocol", TypeIdValue(TcpSocketFactory::GetTypeId()));
    bulk->SetAttribute("Remote", AddressValue(InetSocketAddress(destination, PORT)));
    bulk->SetAttribute("SendSize", UintegerValue(options.writes));
    bulk->SetStartTime(NanoSeconds(flow.start));
    sender->AddApplication(bulk);
}

std::string
Chain::run()
{
    Simulator::Stop(NanoSeconds(options.end));
    Simulator::Run();
    Json json;
    std::vector<uint64_t> received, departed, dropped, marked, hashes, dropHashes;
    std::vector<double> delays;
    for (const auto& sink : sinks)
    {
        received.push_back(sink->GetTotalRx());
    }
    for (const auto& queue : seen)
    {
        departed.push_back(queue->departed);
        dropped.push_back(queue->dropped);
        marked.push_back(queue->marked);
        hashes.push_back(queue->hash);
        dropHashes.push_back(queue->dropHash);
        delays.push_back(queue->delays.meanMs());
    }
    json.string("simulator", "ns-3 3.37").list("received_bytes", received).list("departed", departed);
    json.list("dropped", dropped).list("marked", marked).list("delay_mean_ms", delays);
    json.list("hash", hashes).list("drop_hash", dropHashes);
    Simulator::Destroy();
    return json.text();
}

} // namespace

int
main(int argc, char* argv[])
{
    Options options;
    CommandLine cmd;
    cmd.AddValue("hops", "links between routers, in a row", options.hops);
    cmd.AddValue("rate", "of each, bit/s", options.rate);
    cmd.AddValue("delay", "of each, one way, ns", options.delay);
    cmd.AddValue("access-rate", "of the links of hosts, bit/s", options.accessRate);
    cmd.AddValue("access-delay", "of those, one way, ns", options.accessDelay);
    cmd.AddValue("limit", "packets in each queue between routers", options.limit);
    cmd.AddValue("aqm", "taildrop, codel, fqcodel or pie", options.aqm);
    cmd.AddValue("both-ways", "whether the way back has the same queue", options.bothWays);
    cmd.AddValue("writes", "bytes of each write of an application", options.writes);
    cmd.AddValue("send-buffer", "of each socket, bytes", options.sendBuffer);
    cmd.AddValue("receive-buffer", "of each socket, bytes", options.receiveBuffer);
    cmd.AddValue("end", "ns", options.end);
    cmd.AddValue("seed", "the number of the run", options.seed);
    cmd.AddValue("flows", "CONTROL,FROM,TO,FARTHER,START of each, with ; between them", options.flows);
    cmd.AddValue("trace", "a file for all packets: time, sent or drop, flow, number, bytes", options.trace);
    cmd.Parse(argc, argv);
    std::cout << Chain(options).run() << std::endl;
    return 0;
}

// Passes the events of events.txt to ns-3.37's congestion controls, and writes what each did to NAME.txt. Run by hand, with libns3-dev
// installed:
//
//   g++ -std=c++17 ns3.cc -o /tmp/ns3 -lns3-internet -lns3-network -lns3-core && /tmp/ns3 < events.txt
//
// The same in the folder rounds, whose events reach what takes many round trips.
//
// It does what TcpSocketBase does around them: the window is the threshold after a loss and a segment after a timeout,
// and BBR is called through CongControl. In flight is counted in eighths of the window, or of 200 segments if that is less.

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/tcp-bbr.h"
#include "ns3/tcp-bic.h"
#include "ns3/tcp-cubic.h"
#include "ns3/tcp-dctcp.h"
#include "ns3/tcp-highspeed.h"
#include "ns3/tcp-htcp.h"
#include "ns3/tcp-illinois.h"
#include "ns3/tcp-rate-ops.h"
#include "ns3/tcp-scalable.h"
#include "ns3/tcp-vegas.h"
#include "ns3/tcp-veno.h"
#include "ns3/tcp-yeah.h"
#include "ns3/tcp-hybla.h"
#include "ns3/tcp-westwood.h"

#include <fstream>
#include <functional>
#include <iostream>
#include <list>
#include <sstream>

using namespace ns3;

static const uint32_t MSS = 1000;

struct Event
{
    std::string kind;
    int64_t later = 0;
    std::vector<int64_t> numbers;
};

struct Peer
{
    Ptr<TcpCongestionOps> control;
    // Writes to NAME.txt.
    std::ofstream results;
    bool bbr;
    Ptr<TcpSocketState> state = CreateObject<TcpSocketState>();
    uint64_t acknowledged = 0;
    bool recovering = false, opens = false;

    Peer(const std::string& name, Ptr<TcpCongestionOps> control)
        : control(control), results(name + ".txt"), bbr(name == "bbr")
    {
        if (bbr)
        {
            control->SetAttribute("Stream", UintegerValue(4));
        }
        state->m_segmentSize = MSS;
        state->m_initialCWnd = 10;
        state->m_cWnd = 10 * MSS;
        state->m_initialSsThresh = UINT32_MAX;
        state->m_ssThresh = UINT32_MAX;
        state->m_pacing = bbr;
        state->m_lastRtt = MilliSeconds(40);
        state->m_minRtt = MilliSeconds(40);
        state->m_congState = TcpSocketState::CA_OPEN;
        Number(0);
        control->Init(state);
        if (bbr)
        {
            control->CongestionStateSet(state, TcpSocketState::CA_OPEN);
        }
    }

    void Number(uint32_t window)
    {
        state->m_lastAckedSeq = SequenceNumber32(uint32_t(acknowledged));
        state->m_nextTxSequence = SequenceNumber32(uint32_t(acknowledged + window));
        state->m_highTxMark = state->m_nextTxSequence;
    }

    void Take(const Event& event)
    {
        const uint32_t window = state->m_cWnd.Get();
        auto eighths = [&](int64_t part) { return uint32_t(uint64_t(std::min(window, 200 * MSS)) * part / 8 / MSS * MSS); };
        if (event.kind == "ack")
        {
            acknowledged += event.numbers[0] * MSS;
            Number(window);
            Ack(event, eighths(event.numbers[3]));
        }
        else if (event.kind == "loss")
        {
            Number(window);
            uint32_t pipe = eighths(event.numbers[0]);
            state->m_bytesInFlight = pipe;
            state->m_lastAckedSackedBytes = MSS;
            control->CongestionStateSet(state, TcpSocketState::CA_RECOVERY);
            state->m_congState = TcpSocketState::CA_RECOVERY;
            state->m_ssThresh = control->GetSsThresh(state, pipe);
            recovering = true;
            if (!bbr)
            {
                state->m_cWnd = state->m_ssThresh.Get();
            }
        }
        else if (event.kind == "timeout")
        {
            Number(window);
            state->m_ssThresh = control->GetSsThresh(state, eighths(event.numbers[0]));
            control->CwndEvent(state, TcpSocketState::CA_EVENT_LOSS);
            control->CongestionStateSet(state, TcpSocketState::CA_LOSS);
            state->m_congState = TcpSocketState::CA_LOSS;
            state->m_cWnd = MSS;
        }
        else
        {
            // The others learn of it with the next ACK, because the sender passes them the one that ends recovery.
            opens = !bbr;
            if (recovering)
            {
                control->CwndEvent(state, TcpSocketState::CA_EVENT_COMPLETE_CWR);
                state->m_cWnd = state->m_ssThresh.Get();
            }
            if (bbr)
            {
                control->CongestionStateSet(state, TcpSocketState::CA_OPEN);
                state->m_congState = TcpSocketState::CA_OPEN;
            }
            recovering = false;
        }
        results << state->m_cWnd.Get();
        if (bbr)
        {
            results << " " << state->m_pacingRate.Get().GetBitRate();
        }
        results << "\n";
    }

    void Ack(const Event& event, uint32_t inFlight)
    {
        const auto& n = event.numbers;
        const uint32_t segments = n[0];
        const Time rtt = MicroSeconds(n[1]);
        state->m_lastRtt = rtt;
        state->m_minRtt = std::min(state->m_minRtt, rtt);
        state->m_ecnState = n[2] ? TcpSocketState::ECN_ECE_RCVD : TcpSocketState::ECN_IDLE;
        state->m_bytesInFlight = inFlight;
        state->m_lastAckedSackedBytes = segments * MSS;
        if (bbr)
        {
            TcpRateOps::TcpRateConnection connection;
            TcpRateOps::TcpRateSample sample;
            connection.m_delivered = acknowledged;
            sample.m_priorDelivered = acknowledged - std::min<uint64_t>(acknowledged, n[5] * MSS);
            sample.m_delivered = acknowledged - sample.m_priorDelivered;
            sample.m_interval = MicroSeconds(n[4]);
            sample.m_deliveryRate = DataRate(sample.m_delivered * 8.0 / sample.m_interval.GetSeconds());
            sample.m_priorTime = Seconds(1);
            sample.m_isAppLimited = false;
            sample.m_bytesLoss = n[6] * MSS;
            sample.m_priorInFlight = inFlight + segments * MSS;
            sample.m_ackedSacked = segments * MSS;
            control->CongControl(state, connection, sample);
            return;
        }
        control->PktsAcked(state, segments, rtt);
        if (opens)
        {
            control->CongestionStateSet(state, TcpSocketState::CA_OPEN);
            state->m_congState = TcpSocketState::CA_OPEN;
            opens = false;
        }
        if (!recovering)
        {
            control->IncreaseWindow(state, segments);
        }
    }
};

int
main()
{
    std::string line;
    std::vector<Event> events;
    while (std::getline(std::cin, line))
    {
        if (line[0] == '#')
        {
            continue;
        }
        Event event;
        std::istringstream words(line);
        words >> event.kind >> event.later;
        for (int64_t number; words >> number;)
        {
            event.numbers.push_back(number);
        }
        events.push_back(event);
    }
    // In this run, BBR's cycle always begins in its first phase.
    for (uint32_t run = 1;; run++)
    {
        RngSeedManager::SetRun(run);
        auto chance = CreateObject<UniformRandomVariable>();
        chance->SetStream(4);
        int low = 0;
        while (low < 5 && chance->GetValue(0, 6) < 1)
        {
            low++;
        }
        if (low == 5)
        {
            break;
        }
    }
    auto westwood = CreateObject<TcpWestwood>();
    westwood->SetAttribute("ProtocolType", EnumValue(TcpWestwood::WESTWOODPLUS));
    // The smallest round-trip time of the events is below the reference's default, and rho would stay 1.
    auto hybla = CreateObject<TcpHybla>();
    hybla->SetAttribute("RRTT", TimeValue(MilliSeconds(15)));
    std::list<Peer> peers;
    peers.emplace_back("newreno", CreateObject<TcpNewReno>());
    peers.emplace_back("cubic", CreateObject<TcpCubic>());
    peers.emplace_back("vegas", CreateObject<TcpVegas>());
    peers.emplace_back("illinois", CreateObject<TcpIllinois>());
    peers.emplace_back("dctcp", CreateObject<TcpDctcp>());
    peers.emplace_back("hybla", hybla);
    peers.emplace_back("yeah", CreateObject<TcpYeah>());
    peers.emplace_back("veno", CreateObject<TcpVeno>());
    peers.emplace_back("westwood", westwood);
    peers.emplace_back("bbr", CreateObject<TcpBbr>());
    peers.emplace_back("hstcp", CreateObject<TcpHighSpeed>());
    peers.emplace_back("scalable", CreateObject<TcpScalable>());
    peers.emplace_back("htcp", CreateObject<TcpHtcp>());
    peers.emplace_back("bic", CreateObject<TcpBic>());
    // Each event schedules the next one, so that a control's timer that ends at the same time comes before it. So do timers in a
    // simulation: they are older than the packet.
    std::function<void(size_t)> run = [&](size_t place) {
        if (place > 0)
        {
            for (auto& peer : peers)
            {
                peer.Take(events[place - 1]);
            }
        }
        if (place < events.size())
        {
            Simulator::Schedule(MicroSeconds(events[place].later), [&run, place]() { run(place + 1); });
        }
    };
    run(0);
    Simulator::Run();
}

// AODV over 802.11b in ns-3, for `scripts/compare_ns3.py`: the movement and the flows come from files.
//
// movement: 32-bit floats, by tick of 0.1 s and node: x, y.  flows: lines of "source goal first_s".
// The radio has ns-2's numbers: 0.2818 W, 914 MHz, two-ray ground, reception to 250 m, carrier sense to 550 m.
//
// --shipped leaves everything else as ns-3 has it. Without it ns-3 describes the same network as ours does:
// - hardware addresses are known from the start, since ours has no ARP;
// - a radio's queue has 50 places, drops at its end and has no time limit, and no queue discipline before it;
// - a source counts its next hop as a neighbour when it sends, as ns-3's own forwarders do. Without that its
//   neighbour table may not have the next hop, what the MAC tells of it is not heard, and each further packet
//   prolongs the route: the source sends into the void for as long as it has something to send.
#include "ns3/aodv-module.h"
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/propagation-module.h"
#include "ns3/traffic-control-module.h"
#include "ns3/wifi-module.h"

#include <fstream>
#include <iostream>
#include <vector>

using namespace ns3;

// ns-3's AODV keeps its tables to itself; naming a member in an explicit instantiation is the one way to them.
template <typename Tag, typename Tag::Type Member>
struct Reached {
    friend typename Tag::Type Member_(Tag) { return Member; }
};
struct Neighbours {
    typedef aodv::Neighbors aodv::RoutingProtocol::*Type;
    friend Type Member_(Neighbours);
};
struct Routes {
    typedef aodv::RoutingTable aodv::RoutingProtocol::*Type;
    friend Type Member_(Routes);
};
template struct Reached<Neighbours, &aodv::RoutingProtocol::m_nb>;
template struct Reached<Routes, &aodv::RoutingProtocol::m_routingTable>;

static std::vector<float> g_track;
static NodeContainer g_nodes;
static std::vector<Ipv4Address> g_addresses;
static std::vector<Mac48Address> g_hardware;
static bool g_shipped = false;
static uint64_t g_sent = 0, g_got = 0;
static uint64_t g_failed = 0;  // frames that the MAC gave up
static uint64_t g_kept = 0;    // of these, those whose next hop AODV went on using
static double g_delay = 0;

static aodv::RoutingProtocol& RoutingOf(Ptr<Node> node) { return *node->GetObject<aodv::RoutingProtocol>(); }

static void Move(uint32_t tick) {
    const uint32_t count = g_nodes.GetN();
    if ((static_cast<uint64_t>(tick) + 1) * count * 2 > g_track.size()) return;
    for (uint32_t node = 0; node < count; ++node) {
        const float* at = &g_track[(static_cast<uint64_t>(tick) * count + node) * 2];
        g_nodes.Get(node)->GetObject<MobilityModel>()->SetPosition(Vector(at[0], at[1], 1.5));
    }
    Simulator::Schedule(Seconds(0.1), &Move, tick + 1);
}

static void NoteNextHop(Ptr<Node> node, Ipv4Address goal) {
    aodv::RoutingProtocol& routing = RoutingOf(node);
    aodv::RoutingTableEntry route;
    if ((routing.*Member_(Routes())).LookupValidRoute(goal, route))
        (routing.*Member_(Neighbours())).Update(route.GetNextHop(), Seconds(3));  // ActiveRouteTimeout
}

static void Send(Ptr<Socket> socket, Ipv4Address goal, uint32_t bytes, double interval, double last) {
    if (Simulator::Now().GetSeconds() >= last) return;
    Ptr<Packet> packet = Create<Packet>(bytes - 8);
    const int64_t now = Simulator::Now().GetNanoSeconds();
    Ptr<Packet> stamped = Create<Packet>(reinterpret_cast<const uint8_t*>(&now), 8);
    stamped->AddAtEnd(packet);
    socket->Send(stamped);
    if (!g_shipped) NoteNextHop(socket->GetNode(), goal);
    ++g_sent;
    Simulator::Schedule(Seconds(interval), &Send, socket, goal, bytes, interval, last);
}

static void Receive(Ptr<Socket> socket) {
    while (Ptr<Packet> packet = socket->Recv()) {
        int64_t sent = 0;
        packet->CopyData(reinterpret_cast<uint8_t*>(&sent), 8);
        ++g_got;
        g_delay += (Simulator::Now().GetNanoSeconds() - sent) * 1e-9;
    }
}

// Called after AODV was told: whether it still has a valid route over the hop that was not reached.
static void Dropped(uint32_t node, WifiMacDropReason reason, Ptr<const WifiMpdu> frame) {
    if (reason != WIFI_MAC_DROP_REACHED_RETRY_LIMIT) return;
    ++g_failed;
    Ipv4Address hop;
    for (size_t other = 0; other < g_hardware.size(); ++other)
        if (g_hardware[other] == frame->GetHeader().GetAddr1()) hop = g_addresses[other];
    for (const Ipv4Address& goal : g_addresses) {
        aodv::RoutingTableEntry route;
        if ((RoutingOf(g_nodes.Get(node)).*Member_(Routes())).LookupValidRoute(goal, route) &&
            route.GetNextHop() == hop) {
            ++g_kept;
            return;
        }
    }
}

static void KnowAllHardware(const NetDeviceContainer& devices) {
    for (uint32_t node = 0; node < g_nodes.GetN(); ++node) {
        Ptr<Ipv4L3Protocol> ip = g_nodes.Get(node)->GetObject<Ipv4L3Protocol>();
        Ptr<ArpCache> cache = ip->GetInterface(ip->GetInterfaceForDevice(devices.Get(node)))->GetArpCache();
        for (uint32_t other = 0; other < g_nodes.GetN(); ++other) {
            if (other == node) continue;
            ArpCache::Entry* entry = cache->Add(g_addresses[other]);
            entry->SetMacAddress(devices.Get(other)->GetAddress());
            entry->MarkPermanent();
        }
    }
}

static NetDeviceContainer InstallRadios(double captureDb) {
    YansWifiChannelHelper channel;
    channel.SetPropagationDelay("ns3::ConstantSpeedPropagationDelayModel");
    channel.AddPropagationLoss("ns3::TwoRayGroundPropagationLossModel", "Frequency", DoubleValue(914e6),
                               "HeightAboveZ", DoubleValue(0.0), "SystemLoss", DoubleValue(1.0));
    YansWifiPhyHelper phy;
    phy.SetChannel(channel.Create());
    phy.Set("TxPowerStart", DoubleValue(24.5));
    phy.Set("TxPowerEnd", DoubleValue(24.5));
    // The channel drops what is below the sensitivity altogether, so that is set for carrier sense; what may be
    // decoded is decided when a preamble is detected.
    phy.Set("RxSensitivity", DoubleValue(-78.08));
    phy.SetPreambleDetectionModel("ns3::ThresholdPreambleDetectionModel", "MinimumRssi", DoubleValue(-64.38),
                                  "Threshold", DoubleValue(captureDb));
    phy.Set("CcaEdThreshold", DoubleValue(-78.08));
    phy.Set("CcaSensitivity", DoubleValue(-78.08));
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211b);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode", StringValue("DsssRate2Mbps"),
                                 "ControlMode", StringValue("DsssRate2Mbps"), "NonUnicastMode",
                                 StringValue("DsssRate2Mbps"));
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac");
    return wifi.Install(phy, mac, g_nodes);
}

int main(int argc, char** argv) {
    std::string movement, flows;
    uint32_t nodes = 60, bytes = 512, run = 1;
    bool hello = false;
    double duration = 900, interval = 0.25, last = 890, capture = 4.0;
    CommandLine cmd;
    cmd.AddValue("movement", "", movement);
    cmd.AddValue("flows", "", flows);
    cmd.AddValue("nodes", "", nodes);
    cmd.AddValue("bytes", "", bytes);
    cmd.AddValue("duration", "", duration);
    cmd.AddValue("interval", "", interval);
    cmd.AddValue("last", "", last);
    cmd.AddValue("run", "", run);
    cmd.AddValue("hello", "", hello);
    cmd.AddValue("capture", "dB over all else in the air at which a preamble is detected", capture);
    cmd.AddValue("shipped", "leave ARP, queues and AODV's neighbours as they are", g_shipped);
    cmd.Parse(argc, argv);
    RngSeedManager::SetRun(run);
    if (!g_shipped) {
        Config::SetDefault("ns3::WifiMacQueue::MaxSize", QueueSizeValue(QueueSize("50p")));
        Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(Seconds(60)));
    }
    std::ifstream file(movement, std::ios::binary | std::ios::ate);
    g_track.resize(file.tellg() / sizeof(float));
    file.seekg(0);
    file.read(reinterpret_cast<char*>(g_track.data()), g_track.size() * sizeof(float));

    g_nodes.Create(nodes);
    MobilityHelper mobility;
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.Install(g_nodes);
    Move(0);

    NetDeviceContainer devices = InstallRadios(capture);
    AodvHelper aodv;
    aodv.Set("EnableHello", BooleanValue(hello));
    InternetStackHelper internet;
    internet.SetRoutingHelper(aodv);
    internet.Install(g_nodes);
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.1.0.0", "255.255.0.0");
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
    for (uint32_t node = 0; node < nodes; ++node) {
        g_addresses.push_back(interfaces.GetAddress(node));
        g_hardware.push_back(Mac48Address::ConvertFrom(devices.Get(node)->GetAddress()));
        Ptr<WifiMac> mac = DynamicCast<WifiNetDevice>(devices.Get(node))->GetMac();
        mac->TraceConnectWithoutContext("DroppedMpdu", MakeCallback(&Dropped).Bind(node));
    }
    if (!g_shipped) {
        TrafficControlHelper().Uninstall(devices);
        KnowAllHardware(devices);
    }

    for (uint32_t node = 0; node < nodes; ++node) {
        Ptr<Socket> sink = Socket::CreateSocket(g_nodes.Get(node), UdpSocketFactory::GetTypeId());
        sink->Bind(InetSocketAddress(Ipv4Address::GetAny(), 9));
        sink->SetRecvCallback(MakeCallback(&Receive));
    }
    std::ifstream lines(flows);
    uint32_t source, goal;
    double first;
    while (lines >> source >> goal >> first) {
        Ptr<Socket> socket = Socket::CreateSocket(g_nodes.Get(source), UdpSocketFactory::GetTypeId());
        socket->Connect(InetSocketAddress(g_addresses[goal], 9));
        Simulator::Schedule(Seconds(first), &Send, socket, g_addresses[goal], bytes, interval, last);
    }
    Simulator::Stop(Seconds(duration));
    Simulator::Run();
    std::cout << "{\"sent\": " << g_sent << ", \"delivered\": " << g_got << ", \"delay_s\": "
              << (g_got ? g_delay / g_got : 0.0) << ", \"unreached\": " << g_failed << ", \"kept\": " << g_kept
              << ", \"events\": " << Simulator::GetEventCount() << "}\n";
    Simulator::Destroy();
    return 0;
}

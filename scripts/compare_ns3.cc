// AODV over 802.11b in ns-3, for `scripts/compare_ns3.py`: the movement and the flows come from files.
//
// movement: 32-bit floats, by tick of 0.1 s and node: x, y.  flows: lines of "source goal first_s".
// The radio has ns-2's numbers: 0.2818 W, 914 MHz, two-ray ground, reception to 250 m, carrier sense to 550 m.
#include "ns3/aodv-module.h"
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/propagation-module.h"
#include "ns3/wifi-module.h"

#include <fstream>
#include <iostream>
#include <vector>

using namespace ns3;

static std::vector<float> g_track;
static NodeContainer g_nodes;
static uint64_t g_sent = 0, g_got = 0;
static double g_delay = 0;

static void Move(uint32_t tick) {
    const uint32_t count = g_nodes.GetN();
    if ((static_cast<uint64_t>(tick) + 1) * count * 2 > g_track.size()) return;
    for (uint32_t node = 0; node < count; ++node) {
        const float* at = &g_track[(static_cast<uint64_t>(tick) * count + node) * 2];
        g_nodes.Get(node)->GetObject<MobilityModel>()->SetPosition(Vector(at[0], at[1], 1.5));
    }
    Simulator::Schedule(Seconds(0.1), &Move, tick + 1);
}

static void Send(Ptr<Socket> socket, uint32_t bytes, double interval, double last) {
    if (Simulator::Now().GetSeconds() >= last) return;
    Ptr<Packet> packet = Create<Packet>(bytes - 8);
    const int64_t now = Simulator::Now().GetNanoSeconds();
    Ptr<Packet> stamped = Create<Packet>(reinterpret_cast<const uint8_t*>(&now), 8);
    stamped->AddAtEnd(packet);
    socket->Send(stamped);
    ++g_sent;
    Simulator::Schedule(Seconds(interval), &Send, socket, bytes, interval, last);
}

static void Receive(Ptr<Socket> socket) {
    while (Ptr<Packet> packet = socket->Recv()) {
        int64_t sent = 0;
        packet->CopyData(reinterpret_cast<uint8_t*>(&sent), 8);
        ++g_got;
        g_delay += (Simulator::Now().GetNanoSeconds() - sent) * 1e-9;
    }
}

int main(int argc, char** argv) {
    std::string movement, flows;
    uint32_t nodes = 60, bytes = 512, run = 1;
    bool hello = false;
    double duration = 900, interval = 0.25, last = 890;
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
    cmd.Parse(argc, argv);
    RngSeedManager::SetRun(run);
    // By default a neighbour that did not answer ARP once is dead for 100 s, whoever comes back meanwhile.
    Config::SetDefault("ns3::ArpCache::DeadTimeout", TimeValue(Seconds(1)));
    Config::SetDefault("ns3::ArpCache::PendingQueueSize", UintegerValue(64));
    std::ifstream file(movement, std::ios::binary | std::ios::ate);
    g_track.resize(file.tellg() / sizeof(float));
    file.seekg(0);
    file.read(reinterpret_cast<char*>(g_track.data()), g_track.size() * sizeof(float));

    g_nodes.Create(nodes);
    MobilityHelper mobility;
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.Install(g_nodes);
    Move(0);

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
    phy.SetPreambleDetectionModel("ns3::ThresholdPreambleDetectionModel", "MinimumRssi", DoubleValue(-64.38));
    phy.Set("CcaEdThreshold", DoubleValue(-78.08));
    phy.Set("CcaSensitivity", DoubleValue(-78.08));
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211b);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode", StringValue("DsssRate2Mbps"),
                                 "ControlMode", StringValue("DsssRate2Mbps"), "NonUnicastMode",
                                 StringValue("DsssRate2Mbps"));
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac");
    NetDeviceContainer devices = wifi.Install(phy, mac, g_nodes);

    AodvHelper aodv;
    aodv.Set("EnableHello", BooleanValue(hello));
    InternetStackHelper internet;
    internet.SetRoutingHelper(aodv);
    internet.Install(g_nodes);
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.1.0.0", "255.255.0.0");
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);

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
        socket->Connect(InetSocketAddress(interfaces.GetAddress(goal), 9));
        Simulator::Schedule(Seconds(first), &Send, socket, bytes, interval, last);
    }
    Simulator::Stop(Seconds(duration));
    Simulator::Run();
    std::cout << "{\"sent\": " << g_sent << ", \"delivered\": " << g_got << ", \"delay_s\": "
              << (g_got ? g_delay / g_got : 0.0) << ", \"events\": " << Simulator::GetEventCount() << "}\n";
    Simulator::Destroy();
    return 0;
}

/** The plans and tenants of the demo. */
export const PLANS = [
  { name: "Starter", features: ["reviews", "responses"] },
  {
    name: "Growth",
    features: ["reviews", "responses", "flags", "profanity_alerts", "multi_location"],
  },
];

export const PROVIDERS = [
  { slug: "google", name: "Google" },
  { slug: "yelp", name: "Yelp" },
  { slug: "facebook", name: "Facebook" },
];

interface Account {
  readonly name: string;
  /** The domain of the users' email addresses. */
  readonly domain: string;
  readonly plan: string;
  readonly primaryColor: string;
  readonly stores: readonly string[];
}

interface Partner {
  readonly name: string;
  readonly domain: string;
  readonly primaryColor: string;
  readonly whiteLabel?: { readonly brandName: string; readonly domain: string };
  readonly accounts: readonly Account[];
}

export const PARTNERS: readonly Partner[] = [
  {
    name: "Northwind Agency",
    domain: "northwind.example",
    primaryColor: "#0b7285",
    whiteLabel: { brandName: "Northwind Reviews", domain: "reviews.northwind.example" },
    accounts: [
      {
        name: "Alder Plumbing",
        domain: "alder-plumbing.example",
        plan: "Growth",
        primaryColor: "#1971c2",
        stores: ["Alder Plumbing East", "Alder Plumbing West"],
      },
      {
        name: "Birch Roofing",
        domain: "birch-roofing.example",
        plan: "Starter",
        primaryColor: "#5c940d",
        stores: ["Birch Roofing North", "Birch Roofing South"],
      },
    ],
  },
  {
    name: "Southgate Media",
    domain: "southgate.example",
    primaryColor: "#862e9c",
    accounts: [
      {
        name: "Cedar Electric",
        domain: "cedar-electric.example",
        plan: "Growth",
        primaryColor: "#e67700",
        stores: ["Cedar Electric Harbour", "Cedar Electric Hill"],
      },
      {
        name: "Dogwood Gardens",
        domain: "dogwood-gardens.example",
        plan: "Starter",
        primaryColor: "#2b8a3e",
        stores: ["Dogwood Gardens Lake", "Dogwood Gardens Park"],
      },
    ],
  },
];

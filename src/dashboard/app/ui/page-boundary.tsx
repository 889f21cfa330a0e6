import { Component, type ReactNode } from "react";
import { useLocation } from "wouter";

import { reloadSignedIn } from "../session/identity.ts";
import { ErrorNotice } from "./states.tsx";

interface PageBoundaryProps {
  readonly children: ReactNode;
}

/** Shows the error of a page that breaks; the navigation stays usable, and leads to pages that do not. */
export function PageBoundary({ children }: PageBoundaryProps) {
  const [location] = useLocation();
  return <Boundary location={location}>{children}</Boundary>;
}

interface BoundaryProps extends PageBoundaryProps {
  readonly location: string;
}

interface Broken {
  readonly error: unknown;
}

class Boundary extends Component<BoundaryProps, { readonly broken?: Broken | undefined }> {
  override state: { readonly broken?: Broken | undefined } = {};

  static getDerivedStateFromError(error: unknown) {
    return { broken: { error } };
  }

  override componentDidUpdate(before: BoundaryProps) {
    const hasLeft = before.location !== this.props.location;
    if (hasLeft && this.state.broken !== undefined) this.setState({ broken: undefined });
  }

  override render() {
    const { broken } = this.state;
    if (broken === undefined) return this.props.children;
    return <ErrorNotice error={broken.error} retry={reloadSignedIn} />;
  }
}

"""How a report looks: values, HTML, figures."""

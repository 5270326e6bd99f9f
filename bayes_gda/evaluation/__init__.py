"""From predictions to judgement: diagnostics of the sampler, calibration of the forecasts, comparison of methods."""
